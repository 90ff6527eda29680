// A simulated time on machines of which a guessed figure differs: each guess alone at both ends of its range,
// and all of them together at the ends that are better and worse.
//
// Programs stay as they are compiled; durations alone change. Guesses about how much memory there is change
// no duration: they say whether the Programs have room.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "runtime/ir/figure_path.h"
#include "runtime/ir/job.h"
#include "runtime/ir/program.h"
#include "runtime/ir/step_range.h"
#include "runtime/sim/simulate.h"

namespace hyperrun {

// What Programs take of a machine's memory.
struct MemoryUse {
  Bytes hbm{};   // of the fullest device
  Bytes pool{};  // of all devices together
};
MemoryUse memory_use(const Plan& plan);
bool has_room(const Machine& machine, std::int32_t devices, const MemoryUse& use);

struct GuessOptions {
  MemoryUse use;                                                      // nothing: it has room everywhere
  std::size_t most = std::numeric_limits<std::size_t>::max();         // guesses that are simulated, in order
  std::function<void(std::int64_t done, std::int64_t all)> progress;  // from any thread; may be empty
};

// How long something takes on a machine. It is called from several threads at once.
using TimeOn = std::function<Nanos(const SupernodeSpec&)>;

// One Program of a plan, which outlives it, on any machine.
class ProgramTime {
 public:
  // `spec`: as the profile has it.
  ProgramTime(const Plan& plan, std::string program, const SupernodeSpec& spec, const SimOptions& sim = {});
  Nanos operator()(const SupernodeSpec& spec) const;
  // So many guesses are simulated in half a minute on two cores, about: the same on every machine.
  std::size_t guesses_in_time() const;

 private:
  const Plan& plan_;
  std::string program_;
  SimOptions sim_;
  TimedStep known_;
};

// `figures`: all of the machine of `spec`. Of a machine without a profile the list is empty, and so are the
// guesses; the range is the time as it is then.
StepRange time_range(const SupernodeSpec& spec, const std::vector<FigurePath>& figures, const TimeOn& time,
                     const GuessOptions& options = {});

enum class RangeEnd : std::uint8_t { kBetter, kWorse };
// The machine of `spec` with every guess of the range at the end that was better, or worse: for the time, or
// where that is the same for the room that there is.
Machine machine_at(RangeEnd end, const SupernodeSpec& spec, const std::vector<FigurePath>& figures,
                   const StepRange& range);
// The machine of `spec` with every guess about memory at the end that leaves least room.
Machine with_least_room(const SupernodeSpec& spec, const std::vector<FigurePath>& figures);

}  // namespace hyperrun

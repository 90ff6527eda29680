// The effect of guessed figures on a simulated time. Each guess is tried alone at both ends of its range, and
// all of them together at their better and their worse ends.
//
// The Programs stay as compiled; only durations change. Guesses about the size of memory change no duration:
// they say whether the Programs have room.
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

// The memory that Programs need.
struct MemoryUse {
  Bytes hbm{};   // of the fullest device
  Bytes pool{};  // of all devices together
};
MemoryUse memory_use(const Plan& plan);
bool has_room(const Machine& machine, std::int32_t devices, const MemoryUse& use);

struct GuessOptions {
  MemoryUse use;                                                      // zero: it has room on every machine
  std::size_t most = std::numeric_limits<std::size_t>::max();         // number of guesses simulated, in order
  std::function<void(std::int64_t done, std::int64_t all)> progress;  // from any thread; may be empty
};

// A time as a function of the machine. It is called from several threads at once.
using TimeOn = std::function<Nanos(const SupernodeSpec&)>;

// The time of one Program on any machine. The plan must outlive it.
class ProgramTime {
 public:
  // `spec` is the machine as in the profile.
  ProgramTime(const Plan& plan, std::string program, const SupernodeSpec& spec, const SimOptions& sim = {});
  Nanos operator()(const SupernodeSpec& spec) const;
  // Number of guesses that are simulated in about half a minute on two cores. It is the same on every
  // machine.
  std::size_t guesses_in_time() const;

 private:
  const Plan& plan_;
  std::string program_;
  SimOptions sim_;
  TimedStep known_;
};

// Returns the range of a time. `figures` are all figures of the machine of `spec`. For a machine without a
// profile the list is empty, and so are the guesses; the range is then the time itself.
StepRange time_range(const SupernodeSpec& spec, const std::vector<FigurePath>& figures, const TimeOn& time,
                     const GuessOptions& options = {});

enum class RangeEnd : std::uint8_t { kBetter, kWorse };
// The machine of `spec` with every guess of the range at its better or worse end: for the time, or for the
// room in memory if the time does not change.
Machine machine_at(RangeEnd end, const SupernodeSpec& spec, const std::vector<FigurePath>& figures,
                   const StepRange& range);
// The machine of `spec` with every guess about memory at the end that leaves least room.
Machine with_least_room(const SupernodeSpec& spec, const std::vector<FigurePath>& figures);

}  // namespace hyperrun

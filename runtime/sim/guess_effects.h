// A simulated time on machines of which a guessed figure differs: each guess alone at both ends of its range,
// and all of them together at the ends that are better and worse.
//
// Programs stay as they are compiled; durations alone change.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "runtime/ir/figure_path.h"
#include "runtime/ir/job.h"
#include "runtime/ir/program.h"
#include "runtime/ir/step_range.h"
#include "runtime/sim/simulate.h"

namespace hyperrun {

struct GuessOptions {
  double seconds = 20;  // that simulating takes, about: what is left then is named and not simulated
  std::function<void(std::int64_t done, std::int64_t all)> progress;  // from any thread; may be empty
};

// How long something takes on a machine. It is called from several threads at once.
using TimeOn = std::function<Nanos(const SupernodeSpec&)>;
// One of the plan's Programs. The plan outlives what is returned; `spec`: as the profile has it.
TimeOn time_of(const Plan& plan, std::string program, const SupernodeSpec& spec, const SimOptions& sim = {});

// `figures`: all of the machine of `spec`. Of a machine without a profile the list is empty, and so are the
// guesses; the range is the time as it is then.
StepRange time_range(const SupernodeSpec& spec, const std::vector<FigurePath>& figures, const TimeOn& time,
                     const GuessOptions& options = {});

enum class RangeEnd : std::uint8_t { kBetter, kWorse };
// The machine of `spec` with every guess that has been simulated at the end that was better, or worse.
Machine machine_at(RangeEnd end, const SupernodeSpec& spec, const std::vector<FigurePath>& figures,
                   const StepRange& range);

}  // namespace hyperrun

// The time of a compiled step on machines of which a guessed figure differs: each guess alone at both ends
// of its range, and all of them together at the ends that are better and worse for the step.
//
// The Programs stay as they are; durations alone change.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "runtime/ir/figure_path.h"
#include "runtime/ir/job.h"
#include "runtime/ir/program.h"
#include "runtime/ir/step_range.h"
#include "runtime/sim/simulate.h"

namespace hyperrun {

struct GuessOptions {
  double seconds = 20;  // that simulating takes, about: what is left then is named and not simulated
  SimOptions sim;
  std::function<void(std::int64_t done, std::int64_t all)> progress;  // from any thread; may be empty
};

// `figures`: all of the machine of `spec`. Of a machine without a profile the list is empty, and so are the
// guesses; the range is the step then.
StepRange step_range(const Plan& plan, const SupernodeSpec& spec, const std::vector<FigurePath>& figures,
                     const GuessOptions& options = {});

enum class RangeEnd : std::uint8_t { kBetter, kWorse };
// The machine of `spec` with every guess that has been simulated at the end that was better, or worse.
Machine machine_at(RangeEnd end, const SupernodeSpec& spec, const std::vector<FigurePath>& figures,
                   const StepRange& range);

}  // namespace hyperrun

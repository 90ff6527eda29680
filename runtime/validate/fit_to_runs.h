// Numbers of a machine that nobody publishes, from published runs.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "runtime/fit/least_squares.h"
#include "runtime/ir/machine.h"
#include "runtime/validate/published_run.h"

namespace hyperrun {

// A number of a machine that may be fitted.
struct MachineUnknown {
  Unknown unknown;
  Figure& (*of)(Machine&);
};
std::span<const MachineUnknown> machine_unknowns();

struct FittedMachine {
  Machine machine;  // whose fitted figures are measured, with `source`
  Fitted fitted;    // by unknown
  int runs = 0;
};

// The machine with the numbers under which the simulator comes closest to the runs that are there to
// calibrate: each set of runs weighs the same. `progress` is called with the mean error of each evaluation.
FittedMachine fit_to_runs(const Machine& machine, std::span<const PublishedRun> runs,
                          const std::function<void(int evaluation, double mean_error)>& progress);

}  // namespace hyperrun

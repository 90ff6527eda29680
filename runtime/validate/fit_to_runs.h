// Fits figures of a machine that nobody publishes to published runs.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "runtime/fit/least_squares.h"
#include "runtime/ir/machine.h"
#include "runtime/validate/published_run.h"

namespace hyperrun {

// A figure of a machine that may be fitted.
struct MachineUnknown {
  Unknown unknown;
  Figure& (*of)(Machine&);
};
std::span<const MachineUnknown> machine_unknowns();

struct FittedMachine {
  Machine machine;  // its fitted figures count as measured, and have a source
  Fitted fitted;    // one value for each unknown
  int runs = 0;
};

// The machine with the figures for which the simulator comes closest to the calibrating runs. Each set of
// runs has the same weight. `progress` is called with the mean error of each evaluation.
FittedMachine fit_to_runs(const Machine& machine, std::span<const PublishedRun> runs,
                          const std::function<void(int evaluation, double mean_error)>& progress);

}  // namespace hyperrun

// hyperrun sim of a job that learns from rewards.
#pragma once

#include "runtime/forecast/sim.h"
#include "runtime/spec/job_reader.h"

namespace hyperrun {

// Its first steps, by the driver of a run, on devices whose Programs last as long as the simulator says. What
// completions say is made up; how long they are is drawn evenly between the two bounds of
// arguments.lengths. Returns the exit status. Throws kUsage for what only the step of one program has.
int simulate_reinforcement(const LoadedJob& loaded, const SimArguments& arguments);

}  // namespace hyperrun

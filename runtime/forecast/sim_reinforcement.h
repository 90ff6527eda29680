// hyperrun sim of a job that learns from rewards: simulates its tasks.
#pragma once

#include "runtime/forecast/sim.h"
#include "runtime/spec/job_reader.h"

namespace hyperrun {

// Simulates the first steps with the driver of a run. Programs last as long as the simulator says. The tokens
// of completions are made up; their numbers are drawn evenly between the bounds of arguments.lengths. Returns
// the exit status. Throws kUsage for options that apply only to the step of one program.
int simulate_reinforcement(const LoadedJob& loaded, const SimArguments& arguments);

}  // namespace hyperrun

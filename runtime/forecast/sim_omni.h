// hyperrun sim of a job with encoders: simulates its tasks.
#pragma once

#include "runtime/forecast/sim.h"
#include "runtime/spec/job_reader.h"

namespace hyperrun {

// Simulates the steps with the scheduler of a run, in the static and in the dynamic order. Returns the exit
// status. Throws kUsage for options that apply only to the step of one program.
int simulate_omni(const LoadedJob& loaded, const SimArguments& arguments);

}  // namespace hyperrun

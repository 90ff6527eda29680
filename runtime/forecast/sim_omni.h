// hyperrun sim of a job with encoders.
#pragma once

#include "runtime/forecast/sim.h"
#include "runtime/spec/job_reader.h"

namespace hyperrun {

// Its steps in both orders, by the scheduler of a run. Returns the exit status. Throws kUsage for what only
// the step of one program has.
int simulate_omni(const LoadedJob& loaded, const SimArguments& arguments);

}  // namespace hyperrun

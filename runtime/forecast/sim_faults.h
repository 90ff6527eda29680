// hyperrun sim --faults: what faults cost a job, foretold from its simulated step.
#pragma once

#include "runtime/forecast/sim.h"
#include "runtime/spec/job_reader.h"

namespace hyperrun {

// Prints the result and returns the exit status.
int simulate_faults(const LoadedJob& loaded, const SimArguments& arguments);

}  // namespace hyperrun

// Starts a run, as one of its processes. Each function returns the exit status and throws Error.
#pragma once

#include "runtime/run/arguments.h"

namespace hyperrun {

// hyperrun JOB, not under mpirun: starts mpirun and is the controller of its ranks.
int run_job(const RunArguments& arguments);

// hyperrun JOB, under mpirun or srun: one device of the run. Rank 0 starts the controller.
int run_device(const RunArguments& arguments);

// Started by rank 0 of a foreign mpirun: the controller. `world`: ranks that mpirun has started.
int run_controller(const RunArguments& arguments, int world);

}  // namespace hyperrun

// The entry points of the processes of a run. Each function returns the exit status and throws Error.
#pragma once

#include "runtime/run/arguments.h"

namespace hyperrun {

// `hyperrun JOB` outside of mpirun: starts mpirun, and becomes the controller of its ranks.
int run_job(const RunArguments& arguments);

// `hyperrun JOB` under mpirun or srun: becomes a rank of the run. Rank 0 also starts the controller.
int run_as_rank(const RunArguments& arguments);

// The controller that rank 0 starts under a foreign mpirun. `world` is mpirun's number of ranks.
int run_controller(const RunArguments& arguments, int world);

}  // namespace hyperrun

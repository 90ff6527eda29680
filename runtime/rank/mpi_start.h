// The start of a rank, the same for runs and calibration: its environment, and MPI.
#pragma once

#include "memory/shared_window.h"
#include "runtime/ir/job.h"

namespace hyperrun {

// A number from the environment that mpirun or srun gives its ranks. 0 if neither variable is set.
int from_environment(const char* open_mpi, const char* slurm);
int rank_from_environment();
int world_size_from_environment();

// Starts MPI with MPI_THREAD_SERIALIZED: several threads may call it, one at a time. Throws kMpi if this MPI
// does not support that.
void start_mpi();

// Whether the executor should have one thread a stream. kAuto: only with several hosts and at least two cores
// a rank. Then a thread can progress messages while the cube computes. On a single host peers read each
// other's memory, and a second thread would only move the work to another core's cache.
bool threads_pay(StreamThreads wanted, const MpiHosts& hosts);

}  // namespace hyperrun

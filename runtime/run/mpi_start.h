// The start of a rank, the same for runs and calibration: its environment, MPI, and room on its host.
#pragma once

#include <filesystem>
#include <span>

#include "memory/shared_window.h"
#include "runtime/ir/job.h"
#include "runtime/ir/program.h"
#include "runtime/spec/session_io.h"

namespace hyperrun {

// A number from the environment that mpirun or srun gives its ranks. 0 if neither variable is set.
int from_environment(const char* open_mpi, const char* slurm);
int rank_from_environment();
int world_size_from_environment();

// Starts MPI with MPI_THREAD_SERIALIZED: several threads may call it, one at a time. Throws kMpi if this MPI
// does not support that.
void start_mpi();

// Checks that this host has room for `ranks` devices, before they are started: shared memory for their HBM
// and for the pool, and files on flash in `folder`. The pool is checked only if all devices of the job are on
// this host. Each device checks again when it starts. Throws kDoesNotFit.
void require_room_for_hbm(const Job& job, int ranks);
void require_room_for_pool(const Job& job, const Plan& plan, int ranks);
// Also throws kUnwritable. If only some devices are on this host, assumes those that need the least.
void require_room_for_flash(const Job& job, const Plan& plan, int ranks, const std::filesystem::path& folder);
// The same checks for a job of several programs.
void require_room_for_pool(const Job& job, std::span<const Session> sessions, int ranks);
void require_room_for_flash(const Job& job, std::span<const Session> sessions, int ranks,
                            const std::filesystem::path& folder);
// All of these checks, for a run without a run directory whose devices are all on this host. Files on flash
// go to the folder for temporary files, which is returned.
std::filesystem::path require_room(const Job& job, const Plan& plan);

// Whether the executor should have one thread a stream. kAuto: only with several hosts and at least two cores
// a rank. Then a thread can progress messages while the cube computes. On a single host peers read each
// other's memory, and a second thread would only move the work to another core's cache.
bool threads_pay(StreamThreads wanted, const MpiHosts& hosts);

}  // namespace hyperrun

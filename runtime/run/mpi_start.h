// What every rank does alike, whatever it is started for.
#pragma once

#include <filesystem>
#include <span>

#include "memory/shared_window.h"
#include "runtime/ir/job.h"
#include "runtime/ir/program.h"
#include "runtime/spec/session_io.h"

namespace hyperrun {

// A number of the environment that mpirun or srun gives its ranks; 0: it has none.
int from_environment(const char* open_mpi, const char* slurm);
int rank_from_environment();
int world_size_from_environment();

// MPI for threads that take turns. Throws kMpi where it cannot do that.
void start_mpi();

// Whether this host has room for what `ranks` devices take, before they are started: windows for their HBM,
// and for the pool where all devices of the job are here, and files on flash in a folder. They look again, on
// all hosts. Throws kDoesNotFit.
void require_room_for_hbm(const Job& job, int ranks);
void require_room_for_pool(const Job& job, const Plan& plan, int ranks);
// kUnwritable, too. Where not all devices are here, at least those are that need least.
void require_room_for_flash(const Job& job, const Plan& plan, int ranks, const std::filesystem::path& folder);
// The same of a job of several programs.
void require_room_for_pool(const Job& job, std::span<const Session> sessions, int ranks);
void require_room_for_flash(const Job& job, std::span<const Session> sessions, int ranks,
                            const std::filesystem::path& folder);
// All of it, for devices that are all here and leave no run directory: files lie in the folder for temporary
// files, which is returned.
std::filesystem::path require_room(const Job& job, const Plan& plan);

// Whether an executor has a thread a stream. AUTO: such threads pay where messages need somebody to move them
// on while the cube computes, and there are cores for it. On one host peers read each other's memory, and a
// second thread only passes the work from cache to cache.
bool threads_pay(StreamThreads wanted, const MpiHosts& hosts);

}  // namespace hyperrun

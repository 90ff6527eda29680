#include "launcher/mpi_start.h"

#include <mpi.h>

#include <cstdlib>
#include <thread>

#include "launcher/sessions.h"
#include "memory/mpi_pool.h"
#include "runtime/base/error.h"
#include "runtime/control/launch.h"

namespace hyperrun {
namespace {

// touched: by each rank of its HBM by then; the rest nobody ever does.
void require_room_for_pool(const Job& job, Bytes pool, Bytes touched, int ranks) {
  if (pool.value == 0 || ranks != job.supernode.devices || ranks == 1) return;
  require_pool_room(pool, ranks, touched * ranks);
}

}  // namespace

int from_environment(const char* open_mpi, const char* slurm) {
  for (const char* name : {open_mpi, slurm})
    if (const char* value = std::getenv(name)) return std::atoi(value);
  return 0;
}

int rank_from_environment() { return from_environment("OMPI_COMM_WORLD_RANK", "SLURM_PROCID"); }
int world_size_from_environment() { return from_environment("OMPI_COMM_WORLD_SIZE", "SLURM_NTASKS"); }

void start_mpi() {
  control::set_mpi_defaults();
  int provided = 0;
  MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &provided);
  if (provided < MPI_THREAD_SERIALIZED)
    throw Error(Code::kMpi, "this MPI does not let threads take turns (MPI_THREAD_SERIALIZED)")
        .fix("use Debian's Open MPI 4.1");
}

void require_room(const Job& job, const Plan& plan, int ranks) {
  require_room_for_hbm(job, ranks);
  require_room_for_pool(job, plan, ranks);
}

void require_room_for_hbm(const Job& job, int ranks) {
  require_shared_memory(arenas_need(job.supernode.hbm, ranks));
}

void require_room_for_pool(const Job& job, const Plan& plan, int ranks) {
  require_room_for_pool(job, plan.of_all_devices(Tier::kPool), plan.peak(), ranks);
}

void require_room_for_pool(const Job& job, std::span<const Session> sessions, int ranks) {
  Bytes pool{};
  for (int rank = 0; rank < job.supernode.devices; ++rank) pool += peak_of_rank(sessions, rank, Tier::kPool);
  require_room_for_pool(job, pool, touched_hbm(sessions), ranks);
}

bool threads_pay(StreamThreads wanted, const MpiHosts& hosts) {
  if (wanted != StreamThreads::kAuto) return wanted == StreamThreads::kPerStream;
  return hosts.topology().hosts() > 1 &&
         std::thread::hardware_concurrency() >= 2 * hosts.local_ranks().size();
}

}  // namespace hyperrun

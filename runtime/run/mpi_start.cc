#include "runtime/run/mpi_start.h"

#include <mpi.h>

#include <algorithm>
#include <cstdlib>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "memory/backing.h"
#include "memory/mpi_pool.h"
#include "runtime/base/error.h"
#include "runtime/process/launch.h"
#include "runtime/run/sessions.h"

namespace hyperrun {
namespace {

// `touched` is the HBM that each rank will have touched by then. The rest of its HBM takes no memory.
void require_room_for_pool(const Job& job, Bytes pool, Bytes touched, int ranks) {
  if (pool.value == 0 || ranks != job.supernode.devices || ranks == 1) return;
  require_pool_room(pool, ranks, touched * ranks);
}

void require_room_for_flash(std::vector<Bytes> of_ranks, int ranks, const std::filesystem::path& folder) {
  std::ranges::sort(of_ranks);
  of_ranks.resize(std::min(of_ranks.size(), static_cast<std::size_t>(ranks)));
  require_flash_room(folder, of_ranks);
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
  process::set_mpi_defaults();
  int provided = 0;
  MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &provided);
  if (provided < MPI_THREAD_SERIALIZED)
    throw Error(Code::kMpi, "this MPI does not let threads take turns (MPI_THREAD_SERIALIZED)")
        .fix("use Debian's Open MPI 4.1");
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

void require_room_for_flash(const Job& job, const Plan& plan, int ranks,
                            const std::filesystem::path& folder) {
  std::vector<Bytes> of_ranks;
  for (int rank = 0; rank < job.supernode.devices; ++rank)
    of_ranks.push_back(plan.of_device(rank).peak(Tier::kFlash));
  require_room_for_flash(std::move(of_ranks), ranks, folder);
}

void require_room_for_flash(const Job& job, std::span<const Session> sessions, int ranks,
                            const std::filesystem::path& folder) {
  std::vector<Bytes> of_ranks;
  for (int rank = 0; rank < job.supernode.devices; ++rank)
    of_ranks.push_back(peak_of_rank(sessions, rank, Tier::kFlash));
  require_room_for_flash(std::move(of_ranks), ranks, folder);
}

std::filesystem::path require_room(const Job& job, const Plan& plan) {
  const int ranks = job.supernode.devices;
  std::error_code not_there;
  std::filesystem::path folder = std::filesystem::temp_directory_path(not_there);
  if (not_there)
    throw Error(Code::kUnwritable, "the folder for temporary files is not there")
        .at("TMPDIR")
        .fix("set it to a folder that you may write to");
  require_room_for_hbm(job, ranks);
  require_room_for_pool(job, plan, ranks);
  try {
    require_room_for_flash(job, plan, ranks, folder);
  } catch (Error& e) {
    throw e.fix("make room there, or set TMPDIR to a folder on a larger disk");
  }
  return folder;
}

bool threads_pay(StreamThreads wanted, const MpiHosts& hosts) {
  if (wanted != StreamThreads::kAuto) return wanted == StreamThreads::kPerStream;
  return hosts.topology().hosts() > 1 &&
         std::thread::hardware_concurrency() >= 2 * hosts.local_ranks().size();
}

}  // namespace hyperrun

#include "runtime/rank/mpi_start.h"

#include <mpi.h>

#include <cstdlib>
#include <thread>

#include "runtime/base/error.h"
#include "runtime/process/launch.h"

namespace hyperrun {
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

bool threads_pay(StreamThreads wanted, const MpiHosts& hosts) {
  if (wanted != StreamThreads::kAuto) return wanted == StreamThreads::kPerStream;
  return hosts.topology().hosts() > 1 &&
         std::thread::hardware_concurrency() >= 2 * static_cast<unsigned>(hosts.local_devices().size());
}

}  // namespace hyperrun

// The rate of reading and writing the pool: on the device's own host, and on another one, whose device does
// nothing but serve it. One host a rank: mpirun -np 2 pool_bench, on one host or on two.
#include <mpi.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <thread>
#include <vector>

#include "memory/mpi_pool.h"

namespace hyperrun {
namespace {

constexpr Bytes kPart{32 << 20};
constexpr int kRounds = 5;

// Rate in MB/s, the median of the rounds.
template <class Fn>
double rate(Bytes bytes, Fn move) {
  std::array<double, kRounds> rates{};
  for (double& r : rates) {
    const auto begin = std::chrono::steady_clock::now();
    move();
    const std::chrono::duration<double, std::micro> time = std::chrono::steady_clock::now() - begin;
    r = static_cast<double>(bytes.value) / time.count();
  }
  std::ranges::sort(rates);
  return rates[kRounds / 2];
}

// Rank 0's part, from its beginning (at home) and from the offset that is with rank 1.
void measure(Backing& part, Bytes size) {
  std::vector<std::byte> data(static_cast<std::size_t>(size.value));
  for (const auto& [where, from] : {std::pair{"own host", Bytes(0)}, {"other host", kPart / 2}}) {
    const double write = rate(size, [&] { part.write(from, data); });
    const double read = rate(size, [&] { part.read(from, data); });
    std::printf("%10lld bytes, %-10s  write %7.0f MB/s, read %7.0f MB/s\n",
                static_cast<long long>(size.value), where, write, read);
  }
}

void run() {
  const MpiHosts hosts(MPI_COMM_WORLD, /*isolate=*/true);
  std::vector<Bytes> parts(static_cast<std::size_t>(hosts.topology().size()));
  parts[0] = kPart;
  const std::vector<MpiPool> pools = make_mpi_pools(hosts, kPart, parts, nullptr);
  std::atomic<bool> ended{hosts.rank() != 0};
  std::thread moves([&] {  // as a device's stream does, beside the thread that owns MPI
    if (hosts.rank() == 0)
      for (const std::int64_t kib : {64, 1024, 16384}) measure(*pools.front().part, Bytes(kib << 10));
    ended = true;
  });
  MPI_Request all = MPI_REQUEST_NULL;
  for (int met = 0; met == 0;) {
    if (ended && all == MPI_REQUEST_NULL) MPI_Ibarrier(hosts.world(), &all);
    if (all != MPI_REQUEST_NULL) MPI_Test(&all, &met, MPI_STATUS_IGNORE);
    if (pools.front().remote->progress()) std::this_thread::sleep_for(std::chrono::microseconds(50));
  }
  moves.join();
}

}  // namespace
}  // namespace hyperrun

int main(int argc, char** argv) {
  setenv("OMPI_MCA_osc", "^ucx", 0);
  setenv("OMPI_MCA_mpi_yield_when_idle", "1", 0);
  int provided = 0;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_SERIALIZED, &provided);
  hyperrun::run();
  MPI_Finalize();
}

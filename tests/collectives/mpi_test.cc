// The conformance suite between processes, each with one rank or several: mpirun -np N collectives_mpi_test
// shared|messages [RANKS OF A PROCESS]
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <mpi.h>

#include <cstdlib>
#include <cstring>
#include <optional>
#include <thread>
#include <vector>

#include "memory/shared_window.h"
#include "runtime/base/error.h"
#include "tests/collectives/conformance.h"
#include "tests/support/resident.h"

namespace hyperrun::conformance {
namespace {

bool by_messages = false;
int ranks_of_a_process = 1;

class Processes : public ::testing::TestWithParam<Case> {};

TEST_P(Processes, Conform) {
  int processes = 0;
  MPI_Comm_size(MPI_COMM_WORLD, &processes);
  const MpiHosts hosts(MPI_COMM_WORLD, by_messages, ranks_of_a_process * processes);
  std::vector<Arena> arenas = make_shared_arenas(hosts, kArena);
  for (int r = 0; r < hosts.topology().size(); ++r) {
    const auto& host_of = hosts.topology().host_of;
    const bool reachable =
        host_of[static_cast<std::size_t>(r)] == host_of[static_cast<std::size_t>(hosts.devices().first)];
    ASSERT_EQ(arenas.front().peer_base(r) != nullptr, reachable);
    if (by_messages) {
      ASSERT_EQ(reachable, hosts.process(r) == hosts.rank());
    }
  }
  WorldOptions options;
  options.staging = Bytes(1 << 20);
  for (const bool checksums : {false, true}) {
    options.checksums = checksums;
    const auto worlds = make_mpi_worlds(hosts, arenas, std::vector<WorldOptions>(arenas.size(), options));
    std::vector<std::jthread> threads;
    for (std::size_t d = 0; d < arenas.size(); ++d)
      threads.emplace_back([&, d] {
        Rank rank(*worlds[d], arenas[d]);
        GetParam().run(rank);
        // A rank that leaves early would hang the others.
        if (HasFatalFailure()) MPI_Abort(MPI_COMM_WORLD, 1);
        rank.world.wait(*rank.everyone().start({.kind = Collective::kBarrier}));
      });
    threads.clear();  // all ranks of the process are at an end
  }
}

INSTANTIATE_TEST_SUITE_P(Collectives, Processes, ::testing::ValuesIn(cases()),
                         [](const auto& info) { return info.param.name; });

// A budget beyond the room in /dev/shm is an error with a remedy on every rank, before any page is touched.
TEST(SharedWindow, FullSharedMemoryIsAnError) {
  const MpiHosts hosts(MPI_COMM_WORLD);
  std::optional<Error> error;
  try {
    const Arena arena = make_shared_arena(hosts, kGiB * 1024 * 1024);
  } catch (const Error& e) {
    error = e;
  }
  ASSERT_TRUE(error.has_value());
  EXPECT_EQ(error->code(), Code::kDoesNotFit);
  EXPECT_FALSE(error->remedy().empty());
}

// Every page of the planned peak is touched, and none above it: a budget of many GiB must not be paid for.
TEST(SharedWindow, ThePlannedPeakIsPrefaulted) {
  using hyperrun::testing::page_bytes;
  using hyperrun::testing::resident_pages;
  using ::testing::Each;
  const MpiHosts hosts(MPI_COMM_WORLD);
  const Bytes peak = kMiB * 3 + Bytes(5), budget = kMiB * 16;
  const Arena arena = make_shared_arena(hosts, budget, peak);
  EXPECT_THAT(resident_pages(arena.base(), static_cast<std::size_t>(peak.value)), Each(true));
  const std::size_t above = std::size_t{4} << 20;  // whole huge pages, should the system give these
  EXPECT_THAT(resident_pages(arena.base() + above, static_cast<std::size_t>(budget.value) - above),
              Each(false));
  const Arena whole = make_shared_arena(hosts, kMiB * 2);
  EXPECT_THAT(resident_pages(whole.base(), std::size_t{2} << 20), Each(true));
}

}  // namespace
}  // namespace hyperrun::conformance

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  if (argc < 2) return 2;
  hyperrun::conformance::by_messages = std::strcmp(argv[1], "messages") == 0;
  if (argc > 2) hyperrun::conformance::ranks_of_a_process = std::atoi(argv[2]);
  int provided = 0;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_SERIALIZED, &provided);
  if (provided < MPI_THREAD_SERIALIZED) return 2;
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  auto& listeners = ::testing::UnitTest::GetInstance()->listeners();
  if (rank != 0) delete listeners.Release(listeners.default_result_printer());
  const int result = RUN_ALL_TESTS();
  int worst = 0;
  MPI_Allreduce(&result, &worst, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
  MPI_Finalize();
  return worst;
}

// The pool between processes, each a host of its own: mpirun -np N mpi_pool_test windows|messages|none...
// `none` stands for an MPI without windows between hosts.
#include "memory/mpi_pool.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <mpi.h>

#include <chrono>
#include <numeric>
#include <optional>
#include <string>
#include <thread>

#include "collectives/group.h"
#include "collectives/world.h"
#include "memory/pool_placement.h"
#include "runtime/base/error.h"

namespace hyperrun {
namespace {

using ::testing::HasSubstr;

bool has_windows = true;
constexpr Bytes kPart{6 << 20};

// Rank 0's device has the whole pool. The other ranks lend a share each.
std::vector<Bytes> of_one(int ranks) {
  std::vector<Bytes> parts(static_cast<std::size_t>(ranks));
  parts[0] = kPart;
  return parts;
}

// Rank 0 lends. All other ranks need more than their shares.
std::vector<Bytes> of_others(int ranks) {
  std::vector<Bytes> parts(static_cast<std::size_t>(ranks), kPart);
  parts[0] = Bytes(0);
  return parts;
}

Bytes sum(const std::vector<Bytes>& parts) { return std::accumulate(parts.begin(), parts.end(), Bytes(0)); }

std::vector<std::byte> bytes_of(std::size_t n, int seed) {
  std::vector<std::byte> list(n);
  for (std::size_t i = 0; i < n; ++i)
    list[i] = static_cast<std::byte>((i * 2654435761U + static_cast<unsigned>(seed)) >> 13);
  return list;
}

class MpiPools : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!has_windows) GTEST_SKIP() << "this MPI is to have no windows";
  }

  void make_pool(const std::vector<Bytes>& parts) {
    pool_ = std::make_unique<MpiPool>(std::move(make_mpi_pools(hosts_, sum(parts), parts, nullptr).front()));
  }
  void make(const std::vector<Bytes>& parts) {
    make_pool(parts);
    WorldOptions options;
    options.remotes = {pool_->remote.get()};
    world_ = make_mpi_world(hosts_, arena_, options);
    std::vector<int> all(static_cast<std::size_t>(world_->size()));
    std::iota(all.begin(), all.end(), 0);
    everyone_ = &world_->make_group(0, all);
  }
  void meet() { world_->wait(*everyone_->start({.kind = Collective::kBarrier})); }
  int rank() const { return hosts_.rank(); }
  int ranks() const { return hosts_.topology().size(); }

  // Meanwhile this thread is the owner. It serves the others until `work` has ended on all ranks.
  void beside(const std::function<void()>& work) {
    std::atomic<bool> ended{false};
    std::thread thread([&] {
      work();
      ended = true;
    });
    while (!ended) world_->progress();
    thread.join();
    meet();
  }

  MpiHosts hosts_{MPI_COMM_WORLD, /*isolate=*/true};
  Arena arena_ = make_shared_arena(hosts_, kMiB * 4);
  std::unique_ptr<MpiPool> pool_;
  std::unique_ptr<World> world_;
  Group* everyone_ = nullptr;
};

TEST_F(MpiPools, WithRoomOnTheirOwnHostsHaveNoWindow) {
  const std::vector<Bytes> parts(static_cast<std::size_t>(ranks()), kMiB);
  make_pool(parts);
  EXPECT_EQ(pool_->remote, nullptr);
  const auto data = bytes_of(1000, rank());
  pool_->part->write(Bytes(64), data);
  std::vector<std::byte> back(data.size());
  pool_->part->read(Bytes(64), back);
  EXPECT_EQ(back, data);
}

TEST_F(MpiPools, ReadTheBytesWrittenByTheOwner) {
  make(of_one(ranks()));
  if (rank() == 0) {
    const auto data = bytes_of(static_cast<std::size_t>(kPart.value), 1);
    pool_->part->write(Bytes(0), data);
    std::vector<std::byte> back(data.size());
    pool_->part->read(Bytes(0), back);
    EXPECT_EQ(back, data);
    const Bytes remote = kPart - pool_shares(hosts_.topology(), kPart)[0];
    EXPECT_EQ(pool_->part->elsewhere().read, remote);
    EXPECT_EQ(pool_->part->elsewhere().written, remote);
    EXPECT_EQ(pool_->part->high_water(), kPart);
  }
  meet();
}

// All ranks but one ask at once, from threads that do not own MPI. They use the same bytes repeatedly, which
// would reveal a read that overtakes a write.
TEST_F(MpiPools, ReadTheBytesWrittenByOtherThreads) {
  make(of_others(ranks()));
  beside([&] {
    if (rank() == 0) return;
    for (int round = 0; round < 5; ++round) {
      const auto data = bytes_of(static_cast<std::size_t>(kPart.value), 10 * rank() + round);
      pool_->part->write(Bytes(0), data);
      std::vector<std::byte> back(data.size());
      pool_->part->read(Bytes(0), back);
      EXPECT_EQ(back, data) << round;
    }
  });
}

// Messages of collectives get through while one rank moves many bytes: some begin and end within one
// transfer.
TEST_F(MpiPools, DoNotStarveCollectives) {
  constexpr int kEnough = 3, kMostReads = 2000;
  make(of_one(ranks()));
  std::atomic<int> edges{0};  // begins and ends of reads: odd during a read
  std::atomic<int> within{0};
  std::atomic<bool> moving{rank() == 0};
  std::thread moves([&] {
    std::vector<std::byte> data(static_cast<std::size_t>(kPart.value));
    if (rank() == 0)
      for (int i = 0; i < kMostReads && within < kEnough; ++i) {
        ++edges;
        pool_->part->read(Bytes(0), data);
        ++edges;
      }
    moving = false;
  });
  auto* go_on = reinterpret_cast<float*>(arena_.base());
  do {
    *go_on = moving ? 1 : 0;
    const int before = edges;
    world_->wait(*everyone_->start({.kind = Collective::kAllReduce,
                                    .dtype = DType::kF32,
                                    .in = arena_.base(),
                                    .out = arena_.base(),
                                    .inner = 1}));
    if (before % 2 == 1 && before == edges) ++within;
  } while (*go_on > 0);
  moves.join();
  meet();
  if (rank() == 0) {
    EXPECT_GE(within, kEnough);
  }
}

TEST(MpiPoolsWithoutWindows, AreRefusedWithARemedy) {
  if (has_windows) GTEST_SKIP() << "this MPI has windows";
  const MpiHosts hosts(MPI_COMM_WORLD, /*isolate=*/true);
  const std::vector<Bytes> parts = of_one(hosts.topology().size());
  std::optional<Error> error;
  try {
    make_mpi_pools(hosts, sum(parts), parts, nullptr);
  } catch (const Error& e) {
    error = e;
  }
  ASSERT_TRUE(error.has_value());
  EXPECT_EQ(error->code(), Code::kMpi);
  EXPECT_EQ(error->place(), "supernode.pool");
  EXPECT_THAT(error->cause(), HasSubstr("MPI_Win_create: MPI_ERR_WIN"));
  EXPECT_THAT(error->cause(), HasSubstr("OMPI_MCA_osc is \"sm\""));
  EXPECT_THAT(error->legal(), HasSubstr(std::to_string(pool_without_spill(hosts.topology(), parts).value)));
  EXPECT_THAT(error->remedy(), HasSubstr("raise supernode.pool"));
}

TEST(MpiPoolsWithoutRoom, AreRefusedWithARemedy) {
  const MpiHosts hosts(MPI_COMM_WORLD, /*isolate=*/true);
  const std::vector<Bytes> parts(static_cast<std::size_t>(hosts.topology().size()), kGiB * 1024 * 1024);
  try {
    make_mpi_pools(hosts, sum(parts), parts, nullptr);
    ADD_FAILURE() << "nothing was thrown";
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), Code::kDoesNotFit);
    EXPECT_THAT(e.cause(), HasSubstr("share of the pool"));
    EXPECT_THAT(e.remedy(), HasSubstr("supernode.pool"));
  }
}

}  // namespace
}  // namespace hyperrun

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  if (argc < 2) return 2;
  hyperrun::has_windows = !std::string(argv[1]).starts_with("none");
  int provided = 0;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_SERIALIZED, &provided);
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

// The conformance suite with ranks as threads: on one host, on hosts of their own, and in between.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "runtime/base/error.h"
#include "tests/collectives/conformance.h"

namespace hyperrun::conformance {
namespace {

struct Layout {
  std::string name;
  Topology topology;
};

void PrintTo(const Layout& layout, std::ostream* out) { *out << layout.name; }

// The staging is small, so that blocks take many pieces.
void run_everywhere(const Topology& topology, WorldOptions options, const std::function<void(Rank&)>& body) {
  options.staging = Bytes(16 << 10);
  std::vector<Arena> arenas = make_in_process_arenas(topology.size(), kArena);
  auto worlds = make_in_process_worlds(arenas, topology, options);
  std::vector<std::thread> threads;
  for (std::size_t r = 0; r < worlds.size(); ++r) {
    threads.emplace_back([&, r] {
      Rank rank(*worlds[r], arenas[r]);
      body(rank);
    });
  }
  for (std::thread& t : threads) t.join();
}

class InProcess : public testing::TestWithParam<std::tuple<Layout, Case>> {};

TEST_P(InProcess, Conforms) {
  const auto& [layout, which] = GetParam();
  std::atomic<bool> cancel = false;  // a rank that fails an assertion leaves its peers waiting
  WorldOptions options;
  options.cancel = &cancel;
  for (const bool checksums : {false, true}) {
    options.checksums = checksums;
    run_everywhere(layout.topology, options, [&](Rank& rank) {
      try {
        which.run(rank);
      } catch (const Error& e) {
        if (!cancel.exchange(true)) ADD_FAILURE() << e.what();
      }
      if (testing::Test::HasFatalFailure()) cancel = true;
    });
  }
}

const std::vector<Layout> kLayouts = {
    {"OneRank", Topology::one_host(1)},  {"Host2", Topology::one_host(2)},
    {"Host3", Topology::one_host(3)},    {"Host4", Topology::one_host(4)},
    {"Host8", Topology::one_host(8)},    {"Hosts2", Topology::uniform(2, 1)},
    {"Hosts3", Topology::uniform(3, 1)}, {"Hosts4", Topology::uniform(4, 1)},
    {"Hosts5", Topology::uniform(5, 1)}, {"Hosts7", Topology::uniform(7, 1)},
    {"Two2", Topology::uniform(2, 2)},   {"Two3", Topology::uniform(2, 3)},
    {"Three2", Topology::uniform(3, 2)}, {"Mixed", Topology{{0, 1, 1, 0}}},
    {"Uneven", Topology{{0, 0, 1}}},
};

INSTANTIATE_TEST_SUITE_P(Collectives, InProcess,
                         testing::Combine(testing::ValuesIn(kLayouts), testing::ValuesIn(cases())),
                         [](const auto& info) {
                           return std::get<0>(info.param).name + "_" + std::get<1>(info.param).name;
                         });

// The peer never comes. Every waiting rank hears of it, spinning, yielding or asleep.
TEST(Cancel, EndsEveryWait) {
  for (const Topology& topology : {Topology::one_host(2), Topology::uniform(2, 1)}) {
    for (const int delay_ms : {0, 30}) {
      std::atomic<bool> cancel = false;
      std::atomic<int> lost = 0;
      WorldOptions options;
      options.cancel = &cancel;
      run_everywhere(topology, options, [&](Rank& rank) {
        Group& g = rank.everyone();
        if (g.index() == 1) {
          std::this_thread::sleep_for(std::chrono::milliseconds(delay_ms));
          cancel = true;
          return;
        }
        std::byte* buffer = rank.allocate(1 << 20);
        try {
          rank.world.wait(
              *g.start({.kind = Collective::kAllReduce, .in = buffer, .out = buffer, .inner = 1 << 18}));
        } catch (const Error& e) {
          if (e.code() == Code::kDeviceLost) ++lost;
        }
      });
      EXPECT_EQ(lost, 1);
    }
  }
}

// A waiting rank sleeps: it uses next to no processor time.
TEST(Waiting, DoesNotBurnACore) {
  std::atomic<double> used = 1;
  run_everywhere(Topology::one_host(2), {}, [&](Rank& rank) {
    Group& g = rank.everyone();
    if (g.index() == 1) std::this_thread::sleep_for(std::chrono::milliseconds(200));
    timespec before{}, after{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &before);
    rank.world.wait(*g.start({.kind = Collective::kBarrier}));
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &after);
    if (g.index() == 0) {
      used = static_cast<double>(after.tv_sec - before.tv_sec) +
             1e-9 * static_cast<double>(after.tv_nsec - before.tv_nsec);
    }
  });
  EXPECT_LT(used, 0.05);
}

TEST(Bugs, AreCaughtBeforeAPeerReadsThem) {
  run_everywhere(Topology::one_host(1), {}, [](Rank& rank) {
    Group& g = rank.everyone();
    float outside = 0;
    auto* bytes = reinterpret_cast<std::byte*>(&outside);
    EXPECT_THROW(g.start({.kind = Collective::kAllReduce, .in = bytes, .out = bytes, .inner = 1}), Error);
    EXPECT_THROW(g.start({.kind = Collective::kBroadcast, .peer = 1}), Error);
    EXPECT_THROW(rank.world.make_group(1000, {0}), Error);
    EXPECT_THROW(rank.world.make_group(3, {1}), Error);
    EXPECT_THROW(rank.world.make_group(3, {0, 1}), Error);
  });
}

}  // namespace
}  // namespace hyperrun::conformance

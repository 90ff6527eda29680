#include "runtime/process/local_ranks.h"

#include <gtest/gtest.h>

#include <chrono>
#include <csignal>
#include <thread>

#include "runtime/process/child_process.h"

namespace hyperrun::process {
namespace {

// Looks until `wanted` holds for the ranks.
template <class Wanted>
bool seen(LocalRanks& ranks, Wanted wanted) {
  for (int i = 0; i < 2000; ++i) {
    ranks.look();
    if (wanted(ranks.all())) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return false;
}

TEST(LocalRanks, AreSeenToRunToBeStoppedAndToEnd) {
  const ChildProcess launcher(
      {"sh", "-c", "OMPI_COMM_WORLD_RANK=0 sleep 60 & OMPI_COMM_WORLD_RANK=1 sleep 60 & sleep 60 & wait"},
      {});
  LocalRanks ranks;
  ranks.add_launcher(launcher.pid(), "");
  ASSERT_TRUE(seen(ranks, [](const auto& all) { return all.size() == 2; }));
  const int pid = ranks.all().at(1).pid;
  EXPECT_EQ(parent_of(pid), launcher.pid());
  const auto is = [](LocalRank::State state) {
    return [state](const auto& all) { return all.at(1).state == state; };
  };
  kill(pid, SIGSTOP);
  EXPECT_TRUE(seen(ranks, is(LocalRank::State::kStopped)));
  kill(pid, SIGKILL);
  EXPECT_TRUE(seen(ranks, is(LocalRank::State::kEnded)));
  EXPECT_EQ(ranks.all().at(0).state, LocalRank::State::kAlive);
  EXPECT_EQ(ranks.all().size(), 2u);
}

// A daemon may have started ranks of another run as well.
TEST(LocalRanks, AreThoseOfOneJob) {
  const ChildProcess launcher({"sh", "-c",
                               "PMIX_NAMESPACE=71 PMIX_RANK=0 sleep 60 & "
                               "PMIX_NAMESPACE=7 PMIX_RANK=1 sleep 60 & wait"},
                              {});
  LocalRanks ranks;
  ranks.add_launcher(launcher.pid(), "7");
  ASSERT_TRUE(seen(ranks, [](const auto& all) { return !all.empty(); }));
  EXPECT_EQ(ranks.all().count(0), 0u);
  EXPECT_EQ(ranks.all().count(1), 1u);
}

TEST(LocalRanks, OfALauncherThatIsGoneThereAreNone) {
  LocalRanks ranks;
  ranks.add_launcher(-1, "");
  ranks.look();
  EXPECT_TRUE(ranks.all().empty());
  EXPECT_EQ(parent_of(-1), 0);
}

}  // namespace
}  // namespace hyperrun::process

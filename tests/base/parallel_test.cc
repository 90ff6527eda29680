#include "runtime/base/parallel.h"

#include <gtest/gtest.h>

#include <atomic>
#include <mutex>
#include <set>
#include <thread>

#include "runtime/base/time_limit.h"

namespace hyperrun {
namespace {

TEST(ParallelFor, CallsEachIndexOnce) {
  for (const std::size_t n : {0U, 1U, 2U, 1000U}) {
    std::vector<std::atomic<int>> calls(n);
    parallel_for(n, [&](std::size_t i) { ++calls[i]; });
    for (const auto& c : calls) EXPECT_EQ(c, 1);
  }
}

TEST(ParallelFor, RethrowsWhenAllHaveEnded) {
  std::atomic<int> ended{0};
  EXPECT_THROW(parallel_for(20,
                            [&](std::size_t i) {
                              ++ended;
                              if (i == 3) throw std::runtime_error("3");
                            }),
               std::runtime_error);
  EXPECT_EQ(ended, 20);
}

TEST(ParallelFor, NestedCallsShareTheCores) {
  std::mutex mutex;
  std::set<std::thread::id> at_work, most;
  parallel_for(8, [&](std::size_t) {
    parallel_for(8, [&](std::size_t) {
      {
        const std::lock_guard lock(mutex);
        at_work.insert(std::this_thread::get_id());
        if (at_work.size() > most.size()) most = at_work;
      }
      std::this_thread::yield();
      const std::lock_guard lock(mutex);
      at_work.erase(std::this_thread::get_id());
    });
  });
  EXPECT_LE(most.size(), std::max(1U, std::thread::hardware_concurrency()));
}

TEST(ParallelFor, HoldsTheTimeLimitOfItsCaller) {
  const TimeLimit limit(TimeLimit::Clock::now());
  EXPECT_THROW(parallel_for(8, [](std::size_t) { check_time(); }), OutOfTime);
}

TEST(TimeLimit, EndsWithItsScope) {
  {
    const TimeLimit over(TimeLimit::Clock::now());
    const TimeLimit later(TimeLimit::Clock::now() + std::chrono::hours(1));
    EXPECT_THROW(check_time(), OutOfTime) << "a limit within another one can only be earlier";
  }
  EXPECT_NO_THROW(check_time());
}

}  // namespace
}  // namespace hyperrun

// What is worth a simulation.
#include "runtime/plan/candidates.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/plan/worlds.h"

namespace hyperrun::testing {
namespace {

// Forecasts with transfers are the first here, many of them.
TEST(Candidates, AreInAllOrdersWithAndWithoutTransfers) {
  Job job = planned_llama(8, 4, 16);
  job.supernode.hbm = Bytes(std::int64_t{1} << 50);
  const std::int64_t all = candidates_of(job, {.leaders = 1}).forecasts.front().forecast.memory;
  job.supernode.hbm = Bytes(all * 2 / 5);
  job.supernode.pool = Bytes(std::int64_t{1} << 40);
  const std::vector<Forecasted> found = candidates_of(job, {.leaders = 1}).forecasts;
  const auto is_unmoved = [](const Forecasted& f) { return f.strategy.memory == PlanMemory::kNone; };
  ASSERT_GT(std::ranges::find_if(found, is_unmoved) - found.begin(), 8) << "nothing is shown";
  const auto reordered = [&](bool unmoved) {
    return std::ranges::count_if(found, [&](const Forecasted& f) {
      return is_unmoved(f) == unmoved && f.strategy.order != Strategy().order;
    });
  };
  EXPECT_GT(reordered(true), 0);
  EXPECT_GT(reordered(false), 0);
}

}  // namespace
}  // namespace hyperrun::testing

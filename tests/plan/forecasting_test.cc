// The second round of a search on several threads: it is the one that a single thread would make.
#include "runtime/plan/forecasting.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "runtime/plan/search.h"
#include "tests/plan/worlds.h"

namespace hyperrun::testing {
namespace {

std::vector<Bounded> bounded(const Job& job) {
  Bounds all = bound_all(job, spaces().front(), shapes_of(job, spaces().front()), [](std::int64_t) {});
  std::ranges::sort(all.kept, lower);
  return std::move(all.kept);
}

TEST(Forecasting, TakesStrategiesInTheirOrderUntilItIsEnough) {
  const Job job = planned_llama(32, 8, 64);
  std::vector<Bounded> list = bounded(job);
  ASSERT_GT(list.size(), 10'000U) << "more than is looked at ahead";
  list.resize(10'000);
  const std::size_t enough = list.size() - 100;
  Forecasting all(job, spaces().front()), alone(job, spaces().front());
  std::size_t next = 0;
  all.each(list, [&](const Bounded& b, const Forecasts& found) {
    EXPECT_EQ(&b, &list[next]);
    // Sharded is what comes first of its like.
    const auto again = alone.forecast_of(b.strategy);
    EXPECT_EQ(found.as_it_is.has_value(), again.has_value() && b.strategy.deeper == 0);
    if (again && found.as_it_is) {
      EXPECT_EQ(found.as_it_is->forecast.time, again->time) << words(b.strategy);
      EXPECT_EQ(found.as_it_is->forecast.memory, again->memory) << words(b.strategy);
    }
    return ++next < enough;
  });
  EXPECT_EQ(next, enough);
}

TEST(Forecasting, HandsOnWhatIsThrown) {
  const Job job = planned_llama(4, 4, 4);
  const std::vector<Bounded> list = bounded(job);
  Forecasting all(job, spaces().front());
  EXPECT_THROW(all.each(list, [](const Bounded&, const Forecasts&) -> bool { throw 1; }), int);
}

// What one thread has seen of a structure, another must not need.
TEST(Forecasting, BoundsAreTheSameEachTime) {
  const Job job = planned_llama(16, 8, 32);
  const std::vector<Bounded> first = bounded(job), second = bounded(job);
  ASSERT_EQ(first.size(), second.size());
  for (std::size_t i = 0; i < first.size(); ++i)
    ASSERT_TRUE(first[i].bound == second[i].bound && first[i].strategy == second[i].strategy) << i;
}

}  // namespace
}  // namespace hyperrun::testing

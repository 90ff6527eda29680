// The search beside all there is: in small worlds every strategy is simulated.
#include "runtime/plan/search.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "runtime/plan/piece_table.h"
#include "tests/plan/worlds.h"

namespace hyperrun::testing {
namespace {

class SmallWorld : public ::testing::TestWithParam<bool> {
 protected:
  Job job() const { return GetParam() ? planned_mixture(4, 3, 8) : planned_llama(4, 4, 8); }
};

struct Exhausted {
  double best = std::numeric_limits<double>::infinity();
  std::int64_t strategies = 0, simulated = 0;
};

// Every strategy in every order, simulated; their bounds hold.
Exhausted exhaust(const Job& job) {
  Exhausted all;
  PieceTable table(job);
  each_strategy(job, spaces().front(), [&](const Strategy& strategy) {
    ++all.strategies;
    const Pieces* least = table.find_least(strategy);
    const std::int32_t m = micro_batches(strategy, job.training.batch);
    for (const Strategy& s : orders_of(strategy)) {
      const Leader leader = try_strategy(job, s, {});
      if (leader.simulated == 0) continue;
      ++all.simulated;
      all.best = std::min(all.best, leader.simulated);
      ASSERT_NE(least, nullptr) << words(s) << " is left out: " << table.why_not(s);
      const Forecast f = least_form(s, job.model, m, *least);
      EXPECT_LE(f.bound, leader.simulated) << words(s);
      EXPECT_LE(f.least_memory, leader.hbm.value) << words(s);
      const Pieces* pieces = table.find(s);
      ASSERT_NE(pieces, nullptr) << words(s);
      EXPECT_LE(closed_form(s, job.model, m, *pieces, 0).bound, leader.simulated) << words(s);
    }
  });
  return all;
}

TEST_P(SmallWorld, HasNothingBetterThanTheCertificateSays) {
  const Job job = this->job();
  const Exhausted all = exhaust(job);
  ASSERT_GT(all.simulated, 50);
  const Search few = search(job, {.leaders = 4});
  ASSERT_TRUE(few.found());
  EXPECT_EQ(few.strategies, all.strategies);
  const double found = few.leaders.front().simulated;
  EXPECT_GE(found, all.best);
  EXPECT_LE(found, all.best * (1 + few.gap()) * (1 + 1e-9)) << "the certificate does not hold";
  EXPECT_LE(found, all.best * 1.03) << "the leaders are not those that lead";
  // Whoever simulates all that may be better has the best.
  const Search many = search(job, {.leaders = 100'000});
  EXPECT_EQ(many.leaders.front().simulated, all.best);
  EXPECT_LE(many.gap(), few.gap());
}

INSTANTIATE_TEST_SUITE_P(Of, SmallWorld, ::testing::Bool(),
                         [](const auto& info) { return info.param ? "Experts" : "Layers"; });

// A budget that the plain strategies exceed.
TEST(Search, LeavesOutWhatDoesNotFit) {
  Job job = planned_llama(4, 4, 8);
  job.supernode.hbm = Bytes(3'000'000'000);
  job.supernode.pool = Bytes(0);
  const Search s = search(job, {.leaders = 4});
  ASSERT_TRUE(s.found());
  EXPECT_GT(s.do_not_fit, 0);
  EXPECT_LE(s.leaders.front().hbm, job.supernode.hbm);
}

TEST(Search, NamesTheNearestWhereNothingFits) {
  Job job = planned_llama(4, 4, 8);
  job.supernode.hbm = Bytes(100'000'000);
  job.supernode.pool = Bytes(0);
  const Search s = search(job, {.leaders = 4});
  EXPECT_FALSE(s.found());
  ASSERT_TRUE(s.nearest.has_value());
  EXPECT_GT(s.nearest_needs, job.supernode.hbm);
}

}  // namespace
}  // namespace hyperrun::testing

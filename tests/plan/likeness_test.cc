// How forecasts are corrected by what was simulated.
#include "runtime/plan/likeness.h"

#include <gtest/gtest.h>

namespace hyperrun {
namespace {

Strategy strategy_of(PlanMemory memory, PlanSchedule schedule, std::int32_t zero) {
  Strategy s;
  s.memory = memory, s.schedule = schedule, s.zero = zero;
  return s;
}

TEST(Corrections, AreOfTheMostAlike) {
  const Strategy plain = strategy_of(PlanMemory::kNone, PlanSchedule::k1f1b, 1);
  const Strategy moved = strategy_of(PlanMemory::kHyperOffload, PlanSchedule::k1f1b, 1);
  Corrections corrections;
  EXPECT_EQ(corrections.factor(plain), 1);
  corrections.learn(moved, 100, 150);
  EXPECT_EQ(corrections.factor(plain), 1) << "nothing was simulated of its like";
  EXPECT_DOUBLE_EQ(corrections.factor(moved), 1.5);
  const Strategy interleaved = strategy_of(PlanMemory::kHyperOffload, PlanSchedule::kInterleaved, 1);
  EXPECT_DOUBLE_EQ(corrections.factor(interleaved), 1.5) << "it has transfers as well";

  corrections.learn(interleaved, 100, 120);
  EXPECT_DOUBLE_EQ(corrections.factor(interleaved), 1.2);
  EXPECT_DOUBLE_EQ(corrections.factor(moved), 1.5);
  const Strategy gpipe = strategy_of(PlanMemory::kHyperOffload, PlanSchedule::kGpipe, 1);
  EXPECT_DOUBLE_EQ(corrections.factor(gpipe) * corrections.factor(gpipe), 1.5 * 1.2) << "a geometric mean";
  const Strategy other_zero = strategy_of(PlanMemory::kHyperOffload, PlanSchedule::kInterleaved, 3);
  EXPECT_DOUBLE_EQ(corrections.factor(other_zero), 1.2) << "of the same schedule";
}

TEST(Corrections, OfAFamilyAreOfAllItsOrdersAndStages) {
  Strategy a = strategy_of(PlanMemory::kNone, PlanSchedule::kInterleaved, 1), b = a, c = a;
  a.chunks = 2, b.chunks = 4, b.tail = 1;
  c.samples = 2;
  Corrections corrections;
  corrections.learn(a, 100, 110);
  corrections.learn(c, 100, 130);
  EXPECT_DOUBLE_EQ(corrections.factor(b), 1.1);
  EXPECT_EQ(corrections.least(), 1) << "of what nothing is known of";
  corrections.learn(c, 100, 80);
  EXPECT_DOUBLE_EQ(corrections.least(), 0.8);
}

}  // namespace
}  // namespace hyperrun

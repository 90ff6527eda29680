// Calibration of forecasts by simulations.
#include "runtime/plan/forecast_calibration.h"

#include <gtest/gtest.h>

#include <cmath>
#include <utility>

namespace hyperrun {
namespace {

Strategy strategy_of(PlanMemory memory, PlanSchedule schedule, std::int32_t zero) {
  Strategy s;
  s.memory = memory, s.schedule = schedule, s.zero = zero;
  return s;
}

TEST(ForecastCalibration, UsesTheMostSimilarStrategies) {
  const Strategy plain = strategy_of(PlanMemory::kNone, PlanSchedule::k1f1b, 1);
  const Strategy moved = strategy_of(PlanMemory::kHyperOffload, PlanSchedule::k1f1b, 1);
  const Strategy interleaved = strategy_of(PlanMemory::kHyperOffload, PlanSchedule::kInterleaved, 1);
  ForecastCalibration calibration;
  EXPECT_EQ(calibration.factor(plain), 1);
  calibration.learn(moved, 1, 256);
  EXPECT_EQ(calibration.factor(plain), 1) << "nothing was simulated of its like";
  EXPECT_DOUBLE_EQ(calibration.factor(moved), 256);
  EXPECT_DOUBLE_EQ(calibration.factor(interleaved), 2) << "it has transfers as well: the eighth root";

  calibration.learn(interleaved, 1, 16);
  EXPECT_DOUBLE_EQ(calibration.factor(interleaved), 16);
  EXPECT_DOUBLE_EQ(calibration.factor(moved), 256);
  const Strategy gpipe = strategy_of(PlanMemory::kHyperOffload, PlanSchedule::kGpipe, 1);
  EXPECT_DOUBLE_EQ(calibration.factor(gpipe), std::pow(256 * 16, 0.5 / 8)) << "a geometric mean";
  const Strategy other_zero = strategy_of(PlanMemory::kHyperOffload, PlanSchedule::kInterleaved, 3);
  EXPECT_DOUBLE_EQ(calibration.factor(other_zero), 4) << "of the same schedule and outermost axis: the root";
  Strategy other_axis = other_zero;
  other_axis[PlanAxis::kData] = 2;
  EXPECT_DOUBLE_EQ(calibration.factor(other_axis), 2) << "of the same schedule: the fourth root";
}

TEST(ForecastCalibration, IsSharedByAFamilysStages) {
  Strategy a = strategy_of(PlanMemory::kNone, PlanSchedule::kInterleaved, 1);
  a[PlanAxis::kPipeline] = a[PlanAxis::kData] = 2;
  Strategy b = a, c = a, d = a;
  a.chunks = 2, b.chunks = 4, b.last_stage_shortfall = 1;
  c.samples = 2;
  std::swap(d.order[0], d.order[1]);
  ForecastCalibration calibration;
  calibration.learn(a, 1, 4);
  calibration.learn(c, 1, 9);
  EXPECT_DOUBLE_EQ(calibration.factor(b), 4);
  EXPECT_DOUBLE_EQ(calibration.factor(d), std::pow(36.0, 0.125)) << "another axis is outermost";
  EXPECT_EQ(calibration.least(), 1) << "of what nothing is known of";
  calibration.learn(c, 1, 0.5);
  EXPECT_DOUBLE_EQ(calibration.least(), 0.5);
}

}  // namespace
}  // namespace hyperrun

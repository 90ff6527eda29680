// Intervals between saves, against exhaustive search and against the literature's formulas.
#include "runtime/faults/interval.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/faults/worlds.h"

namespace hyperrun::testing {
namespace {

// The exact optimum, by Newton's method on the derivative: (1 - x) exp(x + save / mtbf) = 1 with x = interval
// / mtbf.
double exact_interval(double save, double mtbf) {
  double x = std::sqrt(2 * save / mtbf);
  if (x >= 1) x = 0.9;
  for (int i = 0; i < 200; ++i) {
    const double f = std::exp(x + save / mtbf) * (1 - x) - 1, slope = -x * std::exp(x + save / mtbf);
    x -= f / slope;
  }
  return x * mtbf;
}

TEST(Interval, DalyIsCloserToTheExactOptimumThanYoung) {
  for (const double mtbf : {600.0, 3600.0, 36'000.0, 1e6})
    for (const double save : {1.0, 10.0, 60.0}) {
      const double exact = exact_interval(save, mtbf);
      // The formula has the terms of an expansion up to part x sqrt(part).
      const double part = save / (2 * mtbf);
      EXPECT_NEAR(daly_interval(save, mtbf) / exact, 1, part * std::sqrt(part)) << save << ' ' << mtbf;
      EXPECT_LE(std::abs(daly_interval(save, mtbf) - exact), std::abs(young_interval(save, mtbf) - exact));
    }
  EXPECT_EQ(daly_interval(100, 50), 50) << "a save that takes longer than twice the time between faults";
}

TEST(Interval, BestIsThatOfAnExhaustiveSearch) {
  for (const double step : {0.5, 7.0, 90.0})
    for (const double mtbf : {1800.0, 20'000.0, 1e6})
      for (const SaveCost save : {SaveCost{30, 30}, SaveCost{0.3, 40}, SaveCost{0, 0}, SaveCost{2, 500}}) {
        constexpr std::int64_t kMost = 20'000;
        std::int64_t best = 0;
        double most = -1;
        for (std::int64_t n = 1; n <= kMost; ++n) {
          if (static_cast<double>(n) * step < save.delay()) continue;
          const double g = expected_goodput(static_cast<double>(n) * step, save, mtbf, 100);
          if (g > most) most = g, best = n;
        }
        EXPECT_EQ(best_interval(step, save, mtbf, kMost), best) << step << ' ' << mtbf << ' ' << save.stall;
      }
}

TEST(Interval, BestIsTheExactOptimumWithinAStep) {
  for (const double mtbf : {3600.0, 36'000.0, 1e6})
    for (const double save : {1.0, 20.0, 100.0})
      EXPECT_NEAR(static_cast<double>(best_interval(1, {save, save}, mtbf, 1'000'000)),
                  exact_interval(save, mtbf), 1);
}

TEST(Interval, WithoutFaultsItIsTheLongest) {
  EXPECT_EQ(best_interval(1, {10, 10}, INFINITY, 5000), 5000);
  EXPECT_EQ(expected_goodput(90, {10, 10}, INFINITY, 5), 0.9);
}

// On goodput, since a history of faults has no sharper optimum.
TEST(Interval, OfTheClosedFormIsWithinTwoPercentOfAnExhaustiveSimulation) {
  FaultModel spec = some_faults();
  spec.software = {.mtbf = 20'000 * 3600.0};  // a fault each 15 hours
  const FaultedRun run = some_run();
  const FaultCosts costs = costs_of(spec, run);
  const double mtbf = 1 / fault_rate(spec, run.devices);
  for (const char* policy : {"stop", "restart", "spares", "elastic", "memory", "all"}) {
    const bool copies = find_fault_policy(policy)->copies;
    const std::int64_t best = best_interval(run.step, copies ? costs.copy : costs.disk, mtbf, 100'000);
    double most = 0;
    for (std::int64_t n = 1; n < 2000; n += 1 + n / 20) most = std::max(most, goodput(spec, run, policy, n));
    EXPECT_GE(goodput(spec, run, policy, best), 0.98 * most) << policy;
  }
}

}  // namespace
}  // namespace hyperrun::testing

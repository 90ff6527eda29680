#include "runtime/faults/interval.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace hyperrun {
namespace {

// The least steps between saves that do not overlap.
std::int64_t least_interval(double step, const SaveCost& save, std::int64_t most) {
  const double least = std::ceil(save.delay() / step);
  return least >= static_cast<double>(most) ? most : std::max<std::int64_t>(1, std::llround(least));
}

}  // namespace

double young_interval(double stall, double mtbf) { return std::sqrt(2 * stall * mtbf); }

double daly_interval(double stall, double mtbf) {
  if (std::isinf(mtbf)) return mtbf;
  const double part = stall / (2 * mtbf);
  if (part >= 1) return mtbf;
  return young_interval(stall, mtbf) * (1 + std::sqrt(part) / 3 + part / 9) - stall;
}

// From one return to the next fault a run is exponentially long, x. It has made the saves j for which
// x >= j (work + stall) + delay, so their expected number is exp(-delay / M) / (exp((work + stall) / M) - 1).
double expected_goodput(double work, const SaveCost& save, double mtbf, double down) {
  const double period = work + save.stall;
  if (std::isinf(mtbf)) return work / period;
  return work * std::exp(-save.delay() / mtbf) / (std::expm1(period / mtbf) * (mtbf + down));
}

double expected_restart(double restart, double mtbf) {
  return std::isinf(mtbf) ? restart : mtbf * std::expm1(restart / mtbf);
}

// The goodput rises and then falls, so that thirds of the range can be discarded. Where it is too small for a
// double, fewer steps are better.
std::int64_t best_interval(double step, const SaveCost& save, double mtbf, std::int64_t most) {
  const auto goodput = [&](std::int64_t steps) {
    return expected_goodput(static_cast<double>(steps) * step, save, mtbf, 0);
  };
  std::int64_t low = least_interval(step, save, most), high = most;
  while (high - low > 2) {
    const std::int64_t third = (high - low) / 3, left = low + third, right = high - third;
    if (goodput(left) >= goodput(right))
      high = right;
    else
      low = left;
  }
  std::int64_t best = low;
  for (std::int64_t steps = low; steps <= high; ++steps)
    if (goodput(steps) > goodput(best)) best = steps;
  return best;
}

}  // namespace hyperrun

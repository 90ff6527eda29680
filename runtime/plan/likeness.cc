#include "runtime/plan/likeness.h"

#include <algorithm>
#include <cmath>

namespace hyperrun {

Family family_of(const Strategy& s) {
  return {s.sizes, s.expert_width, s.zero, s.samples, s.schedule, s.recompute, s.deeper > 0, s.memory};
}

Family Corrections::like(Family family, int level) {
  const auto& [sizes, width, zero, samples, schedule, recompute, deeper, memory] = family;
  if (level == 0) return family;
  if (level == 1) return {{}, false, 0, 0, schedule, recompute, deeper, memory};
  return {{}, false, 0, 0, PlanSchedule::kGpipe, PlanRecompute::kNone, false, memory};
}

void Corrections::learn(const Strategy& strategy, double forecast, double simulated) {
  const double ratio = simulated / forecast;
  least_ = std::min(least_, ratio);
  for (int level = 0; level < kLevels; ++level) {
    Mean& mean = means_[{level, like(family_of(strategy), level)}];
    mean.logs += std::log(ratio);
    ++mean.count;
  }
}

double Corrections::factor(const Strategy& strategy) const {
  for (int level = 0; level < kLevels; ++level)
    if (const auto known = means_.find({level, like(family_of(strategy), level)}); known != means_.end())
      return std::exp(known->second.logs / known->second.count);
  return 1;
}

}  // namespace hyperrun

#include "runtime/plan/likeness.h"

#include <algorithm>
#include <cmath>

namespace hyperrun {

Family family_of(const Strategy& s) {
  return {s.sizes, s.experts, s.zero, s.samples, s.schedule, s.recompute, s.deeper > 0, s.memory};
}

Corrections::Kind Corrections::kind_of(const Strategy& s, int level) {
  const auto outermost = std::ranges::find_if(s.order, [&](PlanAxis a) { return s[a] > 1; });
  const PlanAxis axis = outermost == s.order.end() || level > 1 ? PlanAxis::kPipeline : *outermost;
  if (level == 0) return {level, axis, family_of(s)};
  Strategy like;
  like.memory = s.memory;
  if (level < 3) like.schedule = s.schedule, like.recompute = s.recompute, like.deeper = s.deeper;
  return {level, axis, family_of(like)};
}

void Corrections::learn(const Strategy& strategy, double forecast, double simulated) {
  const double ratio = simulated / forecast;
  least_ = std::min(least_, ratio);
  for (int level = 0; level < kLevels; ++level) {
    Mean& mean = means_[kind_of(strategy, level)];
    mean.logs += std::log(ratio);
    ++mean.count;
  }
}

double Corrections::factor(const Strategy& strategy) const {
  double weight = 1;
  for (int level = 0; level < kLevels; ++level, weight /= 2)
    if (const auto known = means_.find(kind_of(strategy, level)); known != means_.end())
      return std::exp(weight * known->second.logs / known->second.count);
  return 1;
}

}  // namespace hyperrun

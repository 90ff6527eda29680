#include "runtime/plan/forecast_calibration.h"

#include <algorithm>
#include <cmath>

namespace hyperrun {

Family family_of(const Strategy& s) {
  return {s.sizes, s.experts, s.zero, s.samples, s.schedule, s.recompute, s.extra_recompute_layers > 0,
          s.memory};
}

ForecastCalibration::Kind ForecastCalibration::kind_of(const Strategy& s, int level) {
  const auto slowest = std::ranges::find_if(s.order, [&](PlanAxis a) { return s[a] > 1; });
  const PlanAxis axis = slowest == s.order.end() || level > 1 ? PlanAxis::kPipeline : *slowest;
  if (level == 0) return {level, axis, family_of(s)};
  Strategy like;
  like.memory = s.memory;
  if (level < 3)
    like.schedule = s.schedule, like.recompute = s.recompute,
    like.extra_recompute_layers = s.extra_recompute_layers;
  return {level, axis, family_of(like)};
}

void ForecastCalibration::learn(const Strategy& strategy, double forecast, double simulated) {
  const double ratio = simulated / forecast;
  least_ = std::min(least_, ratio);
  for (int level = 0; level < kLevels; ++level) {
    Mean& mean = means_[kind_of(strategy, level)];
    mean.logs += std::log(ratio);
    ++mean.count;
  }
}

double ForecastCalibration::factor(const Strategy& strategy) const {
  double weight = 1;
  for (int level = 0; level < kLevels; ++level, weight /= 2)
    if (const auto known = means_.find(kind_of(strategy, level)); known != means_.end())
      return std::exp(weight * known->second.logs / known->second.count);
  return 1;
}

}  // namespace hyperrun

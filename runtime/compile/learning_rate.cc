#include "runtime/compile/learning_rate.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace hyperrun {

double learning_rate(const TrainingSpec& t, std::int64_t step) {
  if (step < t.warmup_steps) return t.lr * static_cast<double>(step + 1) / t.warmup_steps;
  const auto length = static_cast<double>(std::max<std::int64_t>(1, t.steps - t.warmup_steps));
  const double share = std::min(1.0, static_cast<double>(step - t.warmup_steps) / length);
  return t.min_lr + 0.5 * (t.lr - t.min_lr) * (1 + std::cos(std::numbers::pi * share));
}

}  // namespace hyperrun

#include "runtime/device/kernels/policy.h"

#include <algorithm>
#include <cmath>

namespace hyperrun::kernels {
namespace {

struct Row {
  double weight, advantage, ratio;
  double d;  // reference - logp

  Row(const PolicyRows& rows, std::int64_t i)
      : weight(rows.weight[i]),
        advantage(rows.advantage[i]),
        ratio(std::exp(static_cast<double>(rows.logp[i]) - rows.behaviour[i])),
        d(static_cast<double>(rows.reference[i]) - rows.logp[i]) {}

  // True if the ratio is beyond the bound on the side to which the advantage pushes it.
  bool held(double eps) const { return advantage > 0 ? ratio > 1 + eps : advantage < 0 && ratio < 1 - eps; }
  double objective(double eps) const {
    return std::min(ratio * advantage, std::clamp(ratio, 1 - eps, 1 + eps) * advantage);
  }
};

}  // namespace

std::array<double, kPolicySums> policy_sums(const PolicyShape& shape, const PolicyRows& rows) {
  std::array<double, kPolicySums> sums{};
  for (std::int64_t i = 0; i < shape.rows; ++i) {
    if (rows.targets[i] < 0) continue;
    const Row row(rows, i);
    const double divergence = std::expm1(row.d) - row.d;
    sums[0] += row.weight * (shape.kl * divergence - row.objective(shape.clip));
    sums[1] += row.weight * divergence;
    sums[2] += row.held(shape.clip) ? row.weight : 0;
    sums[3] += row.weight * row.ratio;
  }
  return sums;
}

void policy_backward(const PolicyShape& shape, const PolicyRows& rows, float* dlogp) {
  for (std::int64_t i = 0; i < shape.rows; ++i) {
    dlogp[i] = 0;
    if (rows.targets[i] < 0) continue;
    const Row row(rows, i);
    const double by_objective = row.held(shape.clip) ? 0 : -row.ratio * row.advantage;
    dlogp[i] = static_cast<float>(row.weight * (by_objective - shape.kl * std::expm1(row.d)));
  }
}

}  // namespace hyperrun::kernels

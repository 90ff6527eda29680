#include "tests/support/token_formulas.h"

#include <algorithm>
#include <cmath>

namespace hyperrun::testing {

SoftmaxRows softmax_rows(const Values& logits, const Values& targets, double scale) {
  SoftmaxRows rows{Values(logits.size()), Values(targets.size()), Values(targets.size()),
                   Values(targets.size())};
  const std::size_t width = logits.size() / targets.size();
  for (std::size_t r = 0; r < targets.size(); ++r) {
    const auto logit = [&](std::size_t i) { return scale * logits[r * width + i]; };
    rows.most[r] = logit(0);
    for (std::size_t i = 1; i < width; ++i) rows.most[r] = std::max(rows.most[r], logit(i));
    for (std::size_t i = 0; i < width; ++i)
      rows.sum[r] += rows.e[r * width + i] = std::exp(logit(i) - rows.most[r]);
    rows.target[r] = targets[r] < 0 ? 0 : logit(static_cast<std::size_t>(targets[r]));
  }
  return rows;
}

Values cross_entropy_gradient(const CrossEntropyRows& of, const Values& weights, double scale) {
  Values d = of.e;
  const std::size_t width = d.size() / of.targets.size();
  for (std::size_t r = 0; r < of.targets.size(); ++r)
    for (std::size_t i = 0; i < width; ++i) {
      const double p = d[r * width + i] * std::exp(of.own_max[r] - of.most[r]) / of.sum[r];
      const double is_target = static_cast<double>(i) == of.targets[r] ? 1 : 0;
      d[r * width + i] = of.targets[r] < 0 ? 0 : scale * weights[r] * (p - is_target);
    }
  return d;
}

Values policy_sums(const PolicyRows& of, double clip, double kl) {
  Values sums(4);
  for (std::size_t r = 0; r < of.logp.size(); ++r) {
    if (of.targets[r] < 0) continue;
    const double weight = of.weight[r], advantage = of.advantage[r],
                 ratio = std::exp(of.logp[r] - of.behaviour[r]);
    const double d = of.reference[r] - of.logp[r], k3 = std::exp(d) - d - 1;
    const double clipped = std::clamp(ratio, 1 - clip, 1 + clip);
    sums[0] += weight * (-std::min(ratio * advantage, clipped * advantage) + kl * k3);
    sums[1] += weight * k3;
    sums[2] += weight * (clipped * advantage < ratio * advantage ? 1 : 0);
    sums[3] += weight * ratio;
  }
  return sums;
}

Values policy_gradient(const PolicyRows& of, double clip, double kl) {
  Values d(of.logp.size());
  for (std::size_t r = 0; r < d.size(); ++r) {
    if (of.targets[r] < 0) continue;
    const double advantage = of.advantage[r], ratio = std::exp(of.logp[r] - of.behaviour[r]);
    const double clipped = std::clamp(ratio, 1 - clip, 1 + clip);
    const double by_objective = clipped * advantage < ratio * advantage ? 0 : -ratio * advantage;
    d[r] = of.weight[r] * (by_objective + kl * (1 - std::exp(of.reference[r] - of.logp[r])));
  }
  return d;
}

Moments adamw(const op::AdamW& how, Moments of, const Values& gradient, double lr, double t) {
  for (std::size_t i = 0; i < of.w.size(); ++i) {
    const double g = gradient[i];
    of.m[i] = how.beta1 * of.m[i] + (1 - how.beta1) * g;
    of.v[i] = how.beta2 * of.v[i] + (1 - how.beta2) * g * g;
    const double direction = of.m[i] / (1 - std::pow(how.beta1, t)) /
                             (std::sqrt(of.v[i] / (1 - std::pow(how.beta2, t))) + how.eps);
    of.w[i] -= lr * (direction + how.weight_decay * of.w[i]);
  }
  return of;
}

}  // namespace hyperrun::testing

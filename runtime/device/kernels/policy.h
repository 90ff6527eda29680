// The loss of a policy, token by token. Let r = exp(logp - behaviour), the ratio of a token's probability now
// to that when it was drawn, A its advantage and d = reference - logp. Then
//
//   loss = weight * (-min(r A, clip(r, 1 - eps, 1 + eps) A) + kl * (exp(d) - d - 1))
//
// The first term is PPO's clipped objective (Schulman et al. 2017, equation 7). The second is the estimator
// k3 of the KL divergence from the reference (Schulman 2020, "Approximating KL divergence"). GRPO has them
// together (Shao et al. 2024, equation 3).
#pragma once

#include <array>
#include <cstdint>

namespace hyperrun::kernels {

struct PolicyShape {
  std::int64_t rows = 0;
  double clip = 0;  // eps
  double kl = 0;
};

// All arrays are [rows]. A row whose target is negative is not counted.
struct PolicyRows {
  const std::int32_t* targets;
  const float *logp, *weight, *advantage, *behaviour, *reference;
};

// Sums over the rows, each times its weight: the loss without its weight, the divergence exp(d) - d - 1, the
// clipping (1 if it holds the token, else 0), and r. They are in double, in the order of the rows.
inline constexpr std::size_t kPolicySums = 4;
std::array<double, kPolicySums> policy_sums(const PolicyShape& shape, const PolicyRows& rows);

// Writes the derivative of the loss by each row's logp. If both arguments of min are equal, it is that of r
// A.
void policy_backward(const PolicyShape& shape, const PolicyRows& rows, float* dlogp);

}  // namespace hyperrun::kernels

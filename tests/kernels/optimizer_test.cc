#include "runtime/device/kernels/optimizer.h"

#include <cmath>

#include "tests/kernels/common.h"

namespace hyperrun::testing {
namespace {

class Optimizer : public OnEveryTarget {};
HYPERRUN_ON_EVERY_TARGET(Optimizer);

TEST_P(Optimizer, AdamWFollowsItsDefinitionOverSteps) {
  const std::int64_t n = 101;
  const double lr = 0.01, beta1 = 0.9, beta2 = 0.95, eps = 1e-8, decay = 0.1, factor = 0.5;
  Floats w = values(n, 1), m(n), v(n);
  Doubles ew = to_double(w), em(n), ev(n);
  for (int step = 1; step <= 5; ++step) {
    const Floats g = values(n, 10 + step);
    kernels::adamw(n,
                   {.lr = static_cast<float>(lr),
                    .beta1 = static_cast<float>(beta1),
                    .beta2 = static_cast<float>(beta2),
                    .eps = static_cast<float>(eps),
                    .weight_decay = static_cast<float>(decay),
                    .bias1 = kernels::bias_correction(beta1, step),
                    .bias2 = kernels::bias_correction(beta2, step),
                    .grad_factor = static_cast<float>(factor)},
                   g.data(), w.data(), m.data(), v.data());
    for (std::int64_t i = 0; i < n; ++i) {
      const double gi = g[i] * factor;
      em[i] = beta1 * em[i] + (1 - beta1) * gi;
      ev[i] = beta2 * ev[i] + (1 - beta2) * gi * gi;
      const double mean = em[i] / (1 - std::pow(beta1, step)), square = ev[i] / (1 - std::pow(beta2, step));
      ew[i] -= lr * (mean / (std::sqrt(square) + eps) + decay * ew[i]);
    }
  }
  EXPECT_LT(relative_error(w, ew), kRoundOff);
  EXPECT_LT(relative_error(m, em), kRoundOff);
  EXPECT_LT(relative_error(v, ev), kRoundOff);
}

// The state may be cut anywhere (ZeRO): elements do not depend on their neighbours.
TEST_P(Optimizer, APartGivesTheSameBits) {
  const std::int64_t n = 77, cut = 29;
  const Floats g = values(n, 2);
  const kernels::AdamW how{.lr = 0.1F, .weight_decay = 0.1F, .bias1 = 0.1F, .bias2 = 0.001F};
  Floats w = values(n, 1), m = values(n, 3), v(n, 0.5F);
  Floats w2 = w, m2 = m, v2 = v;
  kernels::adamw(n, how, g.data(), w.data(), m.data(), v.data());
  kernels::adamw(cut, how, g.data(), w2.data(), m2.data(), v2.data());
  kernels::adamw(n - cut, how, g.data() + cut, w2.data() + cut, m2.data() + cut, v2.data() + cut);
  EXPECT_EQ(w, w2);
  EXPECT_EQ(m, m2);
  EXPECT_EQ(v, v2);
}

TEST(ClipFactor, ScalesDownOnly) {
  const auto expect = [](float squares, float max, float norm, float factor) {
    const auto clip = kernels::clip_factor(squares, max);
    EXPECT_FLOAT_EQ(clip.norm, norm);
    EXPECT_FLOAT_EQ(clip.factor, factor);
  };
  expect(16, 1, 4, 0.25F);
  expect(0.25F, 1, 0.5F, 1);
  expect(16, 0, 4, 1);
  expect(0, 1, 0, 1);
  EXPECT_TRUE(std::isnan(kernels::clip_factor(std::nanf(""), 1).norm));
}

}  // namespace
}  // namespace hyperrun::testing

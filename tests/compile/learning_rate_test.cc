#include "runtime/compile/learning_rate.h"

#include <gtest/gtest.h>

#include <cmath>

namespace hyperrun {
namespace {

TrainingSpec spec() {
  TrainingSpec t;
  t.steps = 110;
  t.warmup_steps = 10;
  t.lr = 4e-3;
  t.min_lr = 1e-3;
  return t;
}

TEST(LearningRate, WarmsUpInEqualStepsToThePeak) {
  const TrainingSpec t = spec();
  for (std::int64_t s = 0; s < 10; ++s)
    EXPECT_NEAR(learning_rate(t, s), 4e-4 * static_cast<double>(s + 1), 1e-15);
  EXPECT_DOUBLE_EQ(learning_rate(t, 9), t.lr) << "the last step of the warm-up";
  EXPECT_DOUBLE_EQ(learning_rate(t, 10), t.lr) << "where the cosine begins";
}

TEST(LearningRate, FallsAlongHalfACosine) {
  const TrainingSpec t = spec();
  EXPECT_NEAR(learning_rate(t, 60), 2.5e-3, 1e-15) << "half way: the mean of both ends";
  EXPECT_NEAR(learning_rate(t, 35), 2.5e-3 + 1.5e-3 * std::sqrt(0.5), 1e-15) << "a quarter";
  for (std::int64_t s = 10; s < 109; ++s) EXPECT_GT(learning_rate(t, s), learning_rate(t, s + 1)) << s;
  EXPECT_DOUBLE_EQ(learning_rate(t, 110), t.min_lr);
  EXPECT_DOUBLE_EQ(learning_rate(t, 100000), t.min_lr) << "after the end";
}

TEST(LearningRate, WithoutWarmUpStartsAtThePeak) {
  TrainingSpec t = spec();
  t.warmup_steps = 0;
  EXPECT_DOUBLE_EQ(learning_rate(t, 0), t.lr);
}

TEST(LearningRate, WarmUpMayTakeAllSteps) {
  TrainingSpec t = spec();
  t.warmup_steps = t.steps;
  EXPECT_DOUBLE_EQ(learning_rate(t, 109), t.lr);
  EXPECT_TRUE(std::isfinite(learning_rate(t, 110)));
}

}  // namespace
}  // namespace hyperrun

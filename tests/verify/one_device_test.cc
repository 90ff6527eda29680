// The losses of one device, with which layouts are compared if only their losses are known.
#include "runtime/verify/one_device.h"

#include <gtest/gtest.h>

#include "tests/support/jobs.h"

namespace hyperrun::testing {
namespace {

TEST(LossesOfOneDevice, AreThoseOfTheJobHoweverItIsSpread) {
  Job spread = small_job("dp:2 tp:2 sp");
  spread.training.recompute = {{"full", 0, spread.model.layers - 1}};
  spread.memory.policy = "hyperoffload";
  const std::vector<StepLoss> losses = losses_of_one_device(spread, 3);
  const std::vector<StepLoss> plain = losses_of_one_device(for_one_device(spread), 3);
  ASSERT_EQ(losses.size(), 3u);
  for (std::size_t s = 0; s < 3; ++s) EXPECT_EQ(losses[s].loss, plain[s].loss);
  EXPECT_LT(losses[2].loss, losses[0].loss) << "it learns";
}

// The allowed difference is small enough to detect a missing step, or a missing part of the batch.
TEST(LossesOfOneDevice, MayDifferByWhatRoundingChanges) {
  Job job = small_job("dp:2");
  const std::vector<StepLoss> precise = losses_of_one_device(job, 3);
  job.training.precision = kBfloat16;
  const std::vector<StepLoss> rounded = losses_of_one_device(job, 3);
  for (std::size_t s = 0; s < 3; ++s) {
    EXPECT_GE(precise[s].allowed, 1e-5);
    EXPECT_LT(precise[s].allowed, 1e-4);
    EXPECT_GT(rounded[s].allowed, precise[s].allowed);
    EXPECT_NEAR(rounded[s].loss, precise[s].loss, rounded[s].allowed * precise[s].loss);
    if (s == 0) continue;
    EXPECT_GT(1 - rounded[s].loss / rounded[s - 1].loss, rounded[s].allowed);
  }
}

}  // namespace
}  // namespace hyperrun::testing

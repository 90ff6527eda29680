// The same job under every layout equals one device.
#include <gtest/gtest.h>

#include "tests/support/in_process_run.h"
#include "tests/support/jobs.h"
#include "tests/support/relative.h"

namespace hyperrun::testing {
namespace {

class LayoutSweep : public ::testing::TestWithParam<const char*> {};

TEST_P(LayoutSweep, LossesEqualOneDevice) {
  static const RunResult one = run_in_process(small_job(1, 1));
  const RunResult many = run_in_process(small_job(GetParam()));
  ASSERT_EQ(one.losses.size(), many.losses.size());
  EXPECT_LT(one.losses.back(), 0.8 * one.losses.front()) << "it does not learn";
  for (std::size_t s = 0; s < one.losses.size(); ++s) {
    EXPECT_NEAR(many.losses[s], one.losses[s], 1e-4 * one.losses[s]) << "step " << s;
    EXPECT_NEAR(many.grad_norms[s], one.grad_norms[s], 1e-3 * one.grad_norms[s]) << "step " << s;
  }
}

// After one step from zero, m = (1 - beta1) g: the first moments show each gradient.
TEST_P(LayoutSweep, FirstGradientsEqualOneDevice) {
  Job single = small_job(1, 1), job = small_job(GetParam());
  single.training.clip_norm = job.training.clip_norm = 0;
  static const RunResult one = run_in_process(single, {.steps = 1});
  const RunResult many = run_in_process(job, {.steps = 1});
  ASSERT_EQ(one.moments.size(), many.moments.size());
  for (const auto& [name, values] : one.moments)
    EXPECT_LT(relative(values, many.moments.at(name)), 1e-5) << name;
}

INSTANTIATE_TEST_SUITE_P(OneDimension, LayoutSweep,
                         ::testing::Values("dp:2", "tp:2", "tp:2 sp", "dp:2 zero1", "dp:2 zero2",
                                           "dp:2 zero3", "cp:2", "tpx:2 tpy:1", "tpx:1 tpy:2", "dp:4", "tp:4",
                                           "tp:4 sp", "dp:4 zero3", "cp:4", "dp:8", "dp:8 zero3"),
                         [](const auto& info) { return test_title(info.param); });
INSTANTIATE_TEST_SUITE_P(Several, LayoutSweep,
                         ::testing::Values("dp:2 tp:2", "dp:2 tp:2 sp", "dp:2 tp:2 sp zero1", "dp:4 tp:2",
                                           "dp:4 tp:2 sp", "dp:2 tp:4", "dp:2 tp:4 sp", "dp:2 tp:4 sp zero1",
                                           "dp:2 tp:2 zero2", "dp:2 tp:4 sp zero3", "tpx:2 tpy:2",
                                           "tpx:4 tpy:2", "tpx:2 tpy:4", "dp:2 tpx:2 tpy:2 zero3",
                                           "dp:2 cp:2", "cp:2 tp:2", "cp:2 tp:2 sp",
                                           "dp:2 cp:2 tp:2 sp zero2", "cp:2 tpx:2 tpy:2",
                                           "replicas:2 dp:2 zero1", "replicas:2 dp:2 zero3",
                                           "replicas:2 dp:2 tp:2 sp zero2"),
                         [](const auto& info) { return test_title(info.param); });

}  // namespace
}  // namespace hyperrun::testing

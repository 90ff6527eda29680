// The same job under every layout equals one device.
#include <gtest/gtest.h>

#include "tests/support/in_process_run.h"
#include "tests/support/jobs.h"
#include "tests/support/relative.h"

namespace hyperrun::testing {
namespace {

struct Layouts {
  int dp, tp;
  std::vector<std::string> presets;
};

std::string title(const ::testing::TestParamInfo<Layouts>& info) {
  std::string text = "dp" + std::to_string(info.param.dp) + "tp" + std::to_string(info.param.tp);
  for (const std::string& p : info.param.presets) text += p;
  return text;
}

class LayoutSweep : public ::testing::TestWithParam<Layouts> {};

TEST_P(LayoutSweep, LossesEqualOneDevice) {
  static const RunResult one = run_in_process(small_job(1, 1));
  const RunResult many = run_in_process(small_job(GetParam().dp, GetParam().tp, GetParam().presets));
  ASSERT_EQ(one.losses.size(), many.losses.size());
  EXPECT_LT(one.losses.back(), 0.8 * one.losses.front()) << "it does not learn";
  for (std::size_t s = 0; s < one.losses.size(); ++s) {
    EXPECT_NEAR(many.losses[s], one.losses[s], 1e-4 * one.losses[s]) << "step " << s;
    EXPECT_NEAR(many.grad_norms[s], one.grad_norms[s], 1e-3 * one.grad_norms[s]) << "step " << s;
  }
}

// After one step from zero, m = (1 - beta1) g: the first moments show each gradient.
TEST_P(LayoutSweep, FirstGradientsEqualOneDevice) {
  Job single = small_job(1, 1), job = small_job(GetParam().dp, GetParam().tp, GetParam().presets);
  single.training.clip_norm = job.training.clip_norm = 0;
  static const RunResult one = run_in_process(single, {.steps = 1});
  const RunResult many = run_in_process(job, {.steps = 1});
  ASSERT_EQ(one.moments.size(), many.moments.size());
  for (const auto& [name, values] : one.moments)
    EXPECT_LT(relative(values, many.moments.at(name)), 1e-5) << name;
}

INSTANTIATE_TEST_SUITE_P(All, LayoutSweep,
                         ::testing::Values(Layouts{2, 1, {}}, Layouts{1, 2, {}}, Layouts{1, 2, {"sp"}},
                                           Layouts{2, 1, {"zero1"}}, Layouts{4, 1, {}}, Layouts{2, 2, {}},
                                           Layouts{2, 2, {"sp"}}, Layouts{1, 4, {}}, Layouts{1, 4, {"sp"}},
                                           Layouts{2, 2, {"sp", "zero1"}}, Layouts{8, 1, {}},
                                           Layouts{4, 2, {}}, Layouts{4, 2, {"sp"}}, Layouts{2, 4, {}},
                                           Layouts{2, 4, {"sp"}}, Layouts{2, 4, {"sp", "zero1"}}),
                         title);

}  // namespace
}  // namespace hyperrun::testing

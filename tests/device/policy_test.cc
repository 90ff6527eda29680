// Training a policy: every layout gives the results of one device, and the loss is its definition.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <ostream>
#include <string>

#include "tests/support/errors.h"
#include "tests/support/in_process_run.h"
#include "tests/support/jobs.h"
#include "tests/support/relative.h"
#include "tests/support/samples.h"
#include "tests/support/temporary_directory.h"

namespace hyperrun::testing {
namespace {

struct Layout {
  const char* parallel;
  int micro_batches = 1;
  bool gpt2 = false;
};

void PrintTo(const Layout& layout, std::ostream* out) { *out << layout.parallel; }

std::string title(const ::testing::TestParamInfo<Layout>& info) {
  return test_title(info.param.parallel) + "micro" + std::to_string(info.param.micro_batches) +
         (info.param.gpt2 ? "Gpt2" : "");
}

Job job_of(const Layout& layout) {
  Job job = small_job(layout.parallel);
  if (layout.gpt2) become_gpt2(job);
  job.training.micro_batches = layout.micro_batches;
  job.training.steps = 6;
  job.training.policy = {.clip = 0.2, .kl = 0.1, .temperature = 1.25};
  return job;
}

RunOptions on_samples(const Job& job) {
  RunOptions options;
  options.samples = [job](std::int64_t step) { return made_up_samples(job, step); };
  return options;
}

RunResult run(const Job& job, std::int64_t steps = 0) {
  RunOptions options = on_samples(job);
  options.steps = steps;
  return run_in_process(job, options);
}

Job without_clipping(Job job) {
  job.training.clip_norm = 0;
  return job;
}

class PolicySweep : public ::testing::TestWithParam<Layout> {
 protected:
  static Layout single() { return {.parallel = "dp:1 tp:1", .gpt2 = GetParam().gpt2}; }
};

// The terms are about 1 in size, and their sums add up parts of the weights' sum, which is 1. A token at a
// bound may change sides by a rounding: two of some 180.
TEST_P(PolicySweep, ReportsWhatOneDeviceReports) {
  static std::map<bool, RunResult> singles;
  const auto [known, fresh] = singles.try_emplace(GetParam().gpt2);
  if (fresh) known->second = run(job_of(single()));
  const RunResult &one = known->second, many = run(job_of(GetParam()));
  EXPECT_TRUE(many.strays.empty());
  for (const char* name : {"loss", "kl", "clipped", "ratio", "grad_norm"}) {
    const std::vector<double>&expected = one.reported.at(name), &actual = many.reported.at(name);
    ASSERT_EQ(actual.size(), 6U) << name;
    const double allowed = std::string(name) == "clipped"     ? 2.0 / 180
                           : std::string(name) == "grad_norm" ? 1e-3 * expected[0]
                                                              : 1e-4;
    for (std::size_t s = 0; s < expected.size(); ++s)
      EXPECT_NEAR(actual[s], expected[s], allowed) << name << " of step " << s;
  }
  EXPECT_GT(one.reported.at("clipped")[0], 0.05);
}

TEST_P(PolicySweep, FirstGradientsEqualOneDevice) {
  static std::map<bool, RunResult> singles;
  const auto [known, fresh] = singles.try_emplace(GetParam().gpt2);
  if (fresh) known->second = run(without_clipping(job_of(single())), 1);
  const RunResult &one = known->second, many = run(without_clipping(job_of(GetParam())), 1);
  ASSERT_EQ(one.moments.size(), many.moments.size());
  for (const auto& [name, values] : one.moments) {
    // A bias added to all keys changes no softmax: but for rounding its gradient is zero.
    if (name.find("wk.bias") != std::string::npos) continue;
    EXPECT_LT(relative(values, many.moments.at(name)), 1e-5) << name;
  }
}

INSTANTIATE_TEST_SUITE_P(
    Layouts, PolicySweep,
    ::testing::Values(Layout{"dp:1", 4}, Layout{"dp:2", 2}, Layout{"dp:8"}, Layout{"tp:2"},
                      Layout{"tp:4 sp", 2}, Layout{"dp:2 zero1", 2}, Layout{"dp:2 zero2", 4},
                      Layout{"dp:4 zero3"}, Layout{"cp:4"}, Layout{"ring:4", 2},
                      Layout{"ring:2 cp:2 tp:2 sp"}, Layout{"tpx:2 tpy:2"}, Layout{"dp:2 tp:2 sp zero1", 2},
                      Layout{"pp:2", 4}, Layout{"pp:2 gpipe", 4}, Layout{"pp:2 zero_bubble", 4},
                      Layout{"pp:2 dp:2 zero1", 2}, Layout{"pp:2 tp:2 sp", 4}, Layout{"pp:2 ring:2", 2},
                      Layout{"dp:2 tp:2 sp", 2, true}, Layout{"pp:2 zero_bubble", 4, true}),
    title);

// The loss against its definition in double, with the scored log probabilities.
TEST(Policy, ItsLossIsItsDefinition) {
  const Job job = job_of({"dp:2"});
  const TemporaryDirectory dir;
  const std::string path = (dir / "fresh").string();
  Job still = job;
  still.training.lr = still.training.min_lr = 0;
  RunOptions options = on_samples(still);
  options.steps = 1;
  options.save_to = path;
  const RunResult trained = run_in_process(still, options);

  const Samples samples = made_up_samples(job, 0);
  RunOptions scoring;
  scoring.load_from = path;
  scoring.only_scores = true;
  scoring.samples = [&](std::int64_t) { return to_be_scored(samples); };
  const std::vector<float> logp = run_in_process(job, scoring).logp;
  double loss = 0, kl = 0, clipped = 0, ratios = 0;
  for (std::size_t i = 0; i < logp.size(); ++i) {
    if (samples.targets[i] < 0) continue;
    const auto wide = [&](const std::vector<float>& of) { return static_cast<double>(of[i]); };
    const double weight = wide(samples.weight), advantage = wide(samples.advantage);
    const double ratio = std::exp(wide(logp) - wide(samples.behaviour));
    const double d = wide(samples.reference) - wide(logp), k3 = std::exp(d) - d - 1;
    const double held = advantage > 0 ? std::min(ratio, 1.2) : std::max(ratio, 0.8);
    loss += weight * (0.1 * k3 - held * advantage);
    kl += weight * k3;
    clipped += held != ratio ? weight : 0;
    ratios += weight * ratio;
  }
  EXPECT_NEAR(trained.reported.at("loss")[0], loss, 1e-6);
  EXPECT_NEAR(trained.reported.at("kl")[0], kl, 1e-6);
  EXPECT_NEAR(trained.reported.at("clipped")[0], clipped, 1e-6);
  EXPECT_NEAR(trained.reported.at("ratio")[0], ratios, 1e-6);
}

// At a ratio of 1, without a divergence, the gradient of a token of advantage 1 is that of its log
// probability; for equal tokens that of the cross entropy.
TEST(Policy, OnItsOwnTokensItLearnsAsFromAText) {
  Job text = without_clipping(small_job("dp:2 tp:2 sp"));
  Job policy = text;
  policy.training.policy = {.clip = 0.2};
  Samples samples = made_up_samples(text, 0);
  const TemporaryDirectory dir;
  const std::string path = (dir / "fresh").string();
  Job still = text;
  still.training.lr = still.training.min_lr = 0;
  still.training.steps = 1;
  run_in_process(still, {.save_to = path});
  RunOptions scoring;
  scoring.load_from = path;
  scoring.only_scores = true;
  scoring.samples = [&](std::int64_t) { return to_be_scored(samples); };
  samples.behaviour = run_in_process(policy, scoring).logp;
  std::ranges::fill(samples.advantage, 1.0F);
  std::ranges::fill(samples.weight, 1.0F / static_cast<float>(samples.ids.size()));

  RunOptions options;
  options.steps = 1;
  options.samples = [&](std::int64_t) { return samples; };
  const RunResult by_policy = run_in_process(policy, options);
  options.samples = nullptr;
  options.batch = [&](auto, auto first, auto count, auto from, auto length, auto* ids, auto* targets) {
    for (std::int64_t s = 0; s < count; ++s) {
      const auto at = static_cast<std::size_t>((first + s) * samples.tokens + from);
      std::copy_n(&samples.ids[at], length, ids + s * length);
      std::copy_n(&samples.targets[at], length, targets + s * length);
    }
  };
  const RunResult by_text = run_in_process(text, options);
  for (const auto& [name, moment] : by_text.moments)
    EXPECT_LT(relative(moment, by_policy.moments.at(name)), 1e-5) << name;
}

// A rounding loses up to 2^-8 at random: means over some 180 tokens stay within a part of that.
TEST(Policy, InBfloat16LearnsAsInFloat32) {
  const RunResult wide = run(job_of({"dp:2 tp:2 sp zero1"})), half = run(job_of({"dp:2 tp:2 sp zero1 bf16"}));
  for (std::size_t s = 0; s < wide.losses.size(); ++s) {
    EXPECT_NEAR(half.losses[s], wide.losses[s], 0x1p-8) << "step " << s;
    EXPECT_NEAR(half.reported.at("kl")[s], wide.reported.at("kl")[s], 0x1p-8) << "step " << s;
  }
}

// A rewarded choice becomes more likely.
TEST(Policy, Learns) {
  Job job = job_of({"dp:2 tp:2 sp"});
  job.training.policy.kl = 0;
  RunOptions options;
  options.samples = [job](std::int64_t) { return made_up_samples(job, 0); };
  const RunResult trained = run_in_process(job, options);
  EXPECT_LT(trained.losses.back(), trained.losses.front() - 0.02);
}

TEST(Policy, RecomputationAndSchedulesChangeNoBit) {
  Job job = job_of({"dp:1", 4});
  const RunResult one = run(job);
  job.training.recompute = {{"full", 0, 1}};
  EXPECT_EQ(run(job).reported, one.reported);
  Job stages = job_of({"pp:2 zero_bubble", 4});
  EXPECT_EQ(run(stages).losses, one.losses);
}

TEST(Policy, WithoutSamplesIsAnError) {
  EXPECT_ERROR(run_in_process(job_of({"dp:1"})), Code::kControl, "", "brings no samples");
}

}  // namespace
}  // namespace hyperrun::testing

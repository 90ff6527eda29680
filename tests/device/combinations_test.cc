// Every combination of the dimensions of parallelism on 2, 4 and 8 devices, for a dense model and a mixture
// of experts, equals one device. So does every combination of schedule, ZeRO stage and recomputation.
#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "tests/support/in_process_run.h"
#include "tests/support/jobs.h"
#include "tests/support/relative.h"

namespace hyperrun::testing {
namespace {

enum class Model { kDense, kExperts };

// Layouts as "dp:2 tp:2 sp", one for each way to deal `devices`, a power of 2, out to the axes.
// One-dimensional tensor parallelism excludes the two-dimensional; every other one of it comes with sequence
// parallelism.
std::vector<std::string> combinations(int devices, Model model) {
  constexpr std::array<std::string_view, 8> kAxes{"dp", "tp", "tpx", "tpy", "cp", "ring", "pp", "ep"};
  std::vector<std::string> all;
  std::array<int, kAxes.size()> sizes{};
  const auto deal = [&](const auto& self, std::size_t axis, int left) -> void {
    if (axis == kAxes.size()) {
      const bool two = sizes[2] * sizes[3] > 1;
      if (left != 1 || (sizes[1] > 1 && two) || (model == Model::kDense && sizes[7] > 1)) return;
      std::string words;
      for (std::size_t a = 0; a < kAxes.size(); ++a)
        if (sizes[a] > 1 || (two && (a == 2 || a == 3)))
          words += (words.empty() ? "" : " ") + std::string(kAxes[a]) + ":" + std::to_string(sizes[a]);
      all.push_back(words + (sizes[1] > 1 && all.size() % 2 == 0 ? " sp" : ""));
      return;
    }
    for (int size = 1; size <= left; size *= 2) {
      sizes[axis] = size;
      self(self, axis + 1, left / size);
    }
  };
  deal(deal, 0, devices);
  return all;
}

Job job_of(const std::string& parallel, Model model) {
  Job job = small_job(parallel);
  job.model.kv_heads = 8;
  if (model == Model::kExperts)
    job.model.experts = {
        .count = 8, .choices = 2, .ffn = 16, .shared = 1, .dense_layers = 1, .aux_loss = 0.01};
  job.training.steps = 10;
  job.training.clip_norm = 0;
  return job;
}

struct Runs {
  RunResult first, all;  // results of the first step, and of all
};

Runs runs_of(const Job& job) { return {run_in_process(job, {.steps = 1}), run_in_process(job)}; }

// Results of the same model, training and micro-batches on one device.
const Runs& one_device(Job job, Model model) {
  static std::map<std::tuple<int, Model, int, std::string>, Runs> known;
  const auto [at, fresh] =
      known.try_emplace({job.model.layers, model, job.training.micro_batches, job.training.precision});
  if (!fresh) return at->second;
  job.parallel = {};
  job.supernode.devices = 1;
  job.training.recompute = {};
  at->second = runs_of(job);
  return at->second;
}

// Relative tolerances.
struct Allowed {
  double losses = 1e-4, gradients = 1e-5;
};

// After one step from zero, m = (1 - beta1) g: the first moments show each gradient.
void expect_equal_to_one_device(const Job& job, Model model, Allowed allowed = {}) {
  const Runs& one = one_device(job, model);
  const Runs many = runs_of(job);
  ASSERT_EQ(one.all.losses.size(), many.all.losses.size());
  for (std::size_t s = 0; s < one.all.losses.size(); ++s)
    EXPECT_NEAR(many.all.losses[s], one.all.losses[s], allowed.losses * one.all.losses[s]) << "step " << s;
  ASSERT_EQ(one.first.moments.size(), many.first.moments.size());
  for (const auto& [name, values] : one.first.moments)
    EXPECT_LT(relative(values, many.first.moments.at(name)), allowed.gradients) << name;
  EXPECT_EQ(many.all.strays, std::vector<std::string>{});
}

using Case = std::tuple<int, Model>;  // devices

class Combinations : public ::testing::TestWithParam<Case> {};

TEST_P(Combinations, EqualOneDevice) {
  const auto [devices, model] = GetParam();
  int number = 0;
  for (const std::string& parallel : combinations(devices, model)) {
    SCOPED_TRACE(parallel);
    Job job = job_of(parallel, model);
    // Users may name presets in any order.
    if (++number % 2 == 0) std::ranges::reverse(job.parallel.presets);
    for (const MeshAxis& axis : job.parallel.mesh)
      if (axis.name == "pp") set_layers(job, axis.size), job.training.micro_batches = 2;
    if (job.model.layers <= job.model.experts.dense_layers) set_layers(job, 2);
    job.training.batch = 16;
    expect_equal_to_one_device(job, model);
  }
}

std::string title_of_case(const ::testing::TestParamInfo<Case>& info) {
  const auto [devices, model] = info.param;
  return std::to_string(devices) + (model == Model::kDense ? "Dense" : "Experts");
}

INSTANTIATE_TEST_SUITE_P(Devices, Combinations,
                         ::testing::Combine(::testing::Values(2, 4, 8),
                                            ::testing::Values(Model::kDense, Model::kExperts)),
                         title_of_case);
// This test runs by command only, half an hour on two cores: --gtest_also_run_disabled_tests
// --gtest_filter=*Sixteen*.
INSTANTIATE_TEST_SUITE_P(DISABLED_Sixteen, Combinations,
                         ::testing::Combine(::testing::Values(16),
                                            ::testing::Values(Model::kDense, Model::kExperts)),
                         title_of_case);

using Choice =
    std::tuple<std::string, std::string, std::string, Model>;  // schedule, ZeRO stage, recomputation

std::string choice_title(const ::testing::TestParamInfo<Choice>& info) {
  const auto& [schedule, zero, recompute, model] = info.param;
  return test_title(schedule + zero + recompute) + (model == Model::kDense ? "Dense" : "Experts");
}

Job job_of(const std::string& schedule, const std::string& zero, const std::string& recompute, Model model) {
  Job job =
      job_of("pp:2 dp:2 " + zero + " " + schedule + (schedule == "interleaved" ? " chunks:2" : ""), model);
  set_layers(job, 4);
  job.training.micro_batches = 4;
  if (!recompute.empty()) job.training.recompute = {{recompute, 0, job.model.layers - 1}};
  return job;
}

class TrainingCombinations : public ::testing::TestWithParam<Choice> {};

TEST_P(TrainingCombinations, EqualOneDevice) {
  const auto& [schedule, zero, recompute, model] = GetParam();
  expect_equal_to_one_device(job_of(schedule, zero, recompute, model), model);
}

INSTANTIATE_TEST_SUITE_P(All, TrainingCombinations,
                         ::testing::Combine(::testing::Values("gpipe", "1f1b", "interleaved", "zero_bubble"),
                                            ::testing::Values("", "zero1", "zero2", "zero3"),
                                            ::testing::Values("", "selective", "full"),
                                            ::testing::Values(Model::kDense, Model::kExperts)),
                         choice_title);

// Combinations in bfloat16, pairwise: every schedule with every ZeRO stage, and each recomputation and model
// with each of all others. No sum of a pass is split, so gradients are as near as in float32. But a weight
// that differs in its last bit may be rounded the other way for the next step, which is 2^-8 of it. An
// expert's product may differ so in the first step already: its rows are of other tokens, and cut in other
// blocks.
class RoundedCombinations : public ::testing::TestWithParam<std::tuple<int, int>> {};

TEST_P(RoundedCombinations, EqualOneDevice) {
  constexpr std::array<const char*, 4> kSchedules{"gpipe", "1f1b", "interleaved", "zero_bubble"},
      kZero{"", "zero1", "zero2", "zero3"};
  constexpr std::array<const char*, 3> kRecompute{"", "selective", "full"};
  const auto [i, j] = GetParam();
  const auto sum = static_cast<std::size_t>(i + j);
  const Model model = sum % 2 == 0 ? Model::kDense : Model::kExperts;
  Job job = job_of(kSchedules[static_cast<std::size_t>(i)], kZero[static_cast<std::size_t>(j)],
                   kRecompute[sum % kRecompute.size()], model);
  job.training.precision = kBfloat16;
  expect_equal_to_one_device(job, model, {0x1p-8, model == Model::kDense ? 1e-5 : 0x1p-8});
}

INSTANTIATE_TEST_SUITE_P(Pairwise, RoundedCombinations,
                         ::testing::Combine(::testing::Range(0, 4), ::testing::Range(0, 4)));

}  // namespace
}  // namespace hyperrun::testing

// Legal layouts that nobody needs: they, too, equal one device.
#include <gtest/gtest.h>

#include <ostream>
#include <string>
#include <vector>

#include "tests/support/in_process_run.h"
#include "tests/support/jobs.h"
#include "tests/support/relative.h"

namespace hyperrun::testing {
namespace {

struct Odd {
  const char* title;
  std::vector<MeshAxis> mesh;
  std::vector<std::string> presets;
  std::vector<ShardRule> rules;
  bool tied_head = false;
  int sequence = 32;
};

void PrintTo(const Odd& odd, std::ostream* out) { *out << odd.title; }

ShardRule rule(const char* tensor, const char* dim, std::vector<std::string> axes) {
  return {tensor, {{dim, std::move(axes)}}, "test"};
}

ShardRule stored(const char* tensor, const char* dim, std::vector<std::string> axes) {
  return {tensor, {{dim, std::move(axes)}}, "test", true};
}

Job job_of(const Odd& odd) {
  Job job = small_job(1, 1);
  job.model.tied_head = odd.tied_head;
  job.model.sequence = odd.sequence;
  job.training.steps = 3;
  job.training.micro_batches = 2;
  job.training.clip_norm = 0;
  return job;
}

class OddLayout : public ::testing::TestWithParam<Odd> {};

// After one step from zero, m = (1 - beta1) g: the first moments show each gradient.
TEST_P(OddLayout, EqualsOneDevice) {
  Job job = job_of(GetParam());
  const RunResult one = run_in_process(job, {.steps = 1});
  job.parallel = {GetParam().mesh, GetParam().presets, GetParam().rules};
  for (const MeshAxis& axis : GetParam().mesh) job.supernode.devices *= axis.size;
  const RunResult many = run_in_process(job, {.steps = 1});
  EXPECT_NEAR(many.losses[0], one.losses[0], 1e-5 * one.losses[0]);
  ASSERT_EQ(one.moments.size(), many.moments.size());
  for (const auto& [name, values] : one.moments)
    EXPECT_LT(relative(values, many.moments.at(name)), 1e-5) << name;
  EXPECT_EQ(many.strays, std::vector<std::string>{});
}

INSTANTIATE_TEST_SUITE_P(
    Rules, OddLayout,
    ::testing::Values(
        // The two gradients of the embedding are partial over different axes.
        Odd{"SequenceWithoutTensorParallel", {{"tp", 2}}, {"sp"}, {}, true},
        Odd{"GradientsAlongTheSequence",
            {{"dp", 2}},
            {},
            {rule("layers.*.ffn.norm.out.grad", "seq", {"dp"}), rule("layers.*.ffn.up.out", "seq", {"dp"})},
            true},
        // One of them alone was kept in another layout.
        Odd{"StoredGradientOfATiedHead", {{"dp", 2}}, {"dp"}, {stored("*.grad", "*", {"dp"})}, true},
        // 20 tokens are not split over 8 devices, though each of two rules asks for it.
        Odd{"AxesThatTogetherDoNotDivide",
            {{"tpx", 2}, {"tpy", 2}, {"cp", 2}},
            {"cp", "tp2d"},
            {},
            false,
            20},
        // Values relative to a device's own maximum, and that maximum.
        Odd{"OwnSumsSplit", {{"dp", 2}}, {}, {rule("loss.local_sum", "batch", {"dp"})}},
        Odd{"SumsSplit", {{"dp", 2}}, {}, {rule("loss.sum", "batch", {"dp"})}},
        Odd{"OwnSumsOfASplitVocabulary", {{"tp", 2}}, {"tp"}, {rule("loss.local_sum", "batch", {})}},
        Odd{"OwnMaximaOfASplitVocabulary", {{"tp", 2}}, {"tp"}, {rule("loss.max", "batch", {})}},
        Odd{"SumsOfASplitVocabularySplit", {{"tp", 2}}, {"tp"}, {rule("loss.sum", "seq", {"tp"})}},
        // A product is completed to be added, and then split.
        Odd{"SplitSumOfProducts",
            {{"tp", 2}},
            {"tp"},
            {rule("layers.*.attention.wv", "kv_heads", {}),
             rule("layers.*.attention.norm.out.grad2", "batch", {"tp"})}}),
    [](const auto& info) { return info.param.title; });

}  // namespace
}  // namespace hyperrun::testing

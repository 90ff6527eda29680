#include "runtime/verify/random_job.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

#include "runtime/compile/compile.h"
#include "runtime/spec/job_reader.h"
#include "runtime/spec/job_writer.h"
#include "runtime/verify/verify.h"
#include "tests/support/jobs.h"

namespace hyperrun::testing {
namespace {

TEST(RandomJob, IsTheSameAtEveryCall) {
  EXPECT_EQ(random_job(5, nullptr), random_job(5, nullptr));
  EXPECT_FALSE(random_job(5, nullptr) == random_job(6, nullptr));
}

TEST(RandomJob, DrawsOfEverything) {
  std::set<std::string> seen;
  for (std::uint64_t seed = 1; seed <= 100; ++seed) {
    const Job job = random_job(seed, nullptr);
    seen.insert(std::to_string(job.supernode.devices) + " devices");
    for (const MeshAxis& axis : job.parallel.mesh)
      if (axis.size > 1) seen.insert("axis " + axis.name);
    for (const std::string& preset : job.parallel.presets) seen.insert("preset " + preset);
    for (const ShardRule& rule : job.parallel.rules) {
      seen.insert(rule.layout ? "rule by position" : "rule by name");
      if (rule.stored) seen.insert("rule of what is stored");
    }
    for (const RecomputeSpec& r : job.training.recompute) seen.insert("recompute " + r.policy);
    if (!job.parallel.pipeline.axis.empty()) seen.insert("schedule " + job.parallel.pipeline.schedule);
    if (job.training.micro_batches > 1) seen.insert("micro-batches");
    if (job.parallel.paired_passes) seen.insert("paired passes");
    seen.insert(job.training.precision);
    seen.insert(job.model.name);
    if (job.model.experts.count > 0) seen.insert("experts");
    if (job.model.experts.groups > 1) seen.insert("groups of experts");
    if (job.model.experts.capacity.factor > 0) seen.insert("capacity");
    if (job.model.mtp.layers > 0) seen.insert("further tokens");
    if (job.model.window > 0)
      seen.insert(job.model.window_layers.empty() ? "windows" : "windows of some layers");
    if (job.model.mlp_bias) seen.insert("biases");
    seen.insert(job.model.tied_head ? "tied" : "untied");
    if (job.model.sequence % 8 != 0 && job.model.hidden % 8 != 0) seen.insert("uneven");
  }
  EXPECT_EQ(seen, (std::set<std::string>{"2 devices",
                                         "16 devices",
                                         "axis ep",
                                         "axis ring",
                                         "4 devices",
                                         "8 devices",
                                         "axis cp",
                                         "float32",
                                         "bfloat16",
                                         "axis dp",
                                         "axis pp",
                                         "axis replicas",
                                         "axis tp",
                                         "axis tpx",
                                         "axis tpy",
                                         "preset cp",
                                         "preset dp",
                                         "preset ep",
                                         "preset etp",
                                         "preset ep_tp",
                                         "paired passes",
                                         "preset ring",
                                         "experts",
                                         "groups of experts",
                                         "capacity",
                                         "further tokens",
                                         "deepseek_v3",
                                         "gpt2",
                                         "qwen2",
                                         "windows",
                                         "windows of some layers",
                                         "biases",
                                         "preset replicas",
                                         "preset sp",
                                         "preset tp",
                                         "preset tp2d",
                                         "preset zero1",
                                         "preset zero2",
                                         "preset zero3",
                                         "rule by position",
                                         "rule by name",
                                         "rule of what is stored",
                                         "recompute full",
                                         "schedule gpipe",
                                         "schedule 1f1b",
                                         "schedule interleaved",
                                         "schedule zero_bubble",
                                         "recompute selective",
                                         "micro-batches",
                                         "llama",
                                         "qwen3",
                                         "tied",
                                         "untied",
                                         "uneven"}));
}

TEST(RandomJob, KeepsTheModelOfAJob) {
  Job base = small_job("dp:2 tp:2");
  base.name = std::string(64, 'x');
  std::set<std::string> layouts;
  for (std::uint64_t seed = 1; seed <= 8; ++seed) {
    const Job job = random_job(seed, &base);
    EXPECT_EQ(job.model, base.model);
    EXPECT_EQ(job.training, base.training);
    EXPECT_EQ(job.run, base.run);
    EXPECT_LE(job.name.size(), 64U);
    layouts.insert(to_line(job));
  }
  EXPECT_EQ(layouts.size(), 8U);
}

TEST(RandomJob, FindsALayoutForAModelThatNothingDivides) {
  Job base = small_job("dp:1");
  base.model.sequence = base.model.ffn = base.model.vocab = base.model.hidden = 263;
  base.model.heads = base.model.kv_heads = base.training.batch = 1;
  base.model.head_dim = 2;
  const Job job = random_job(1, &base);
  EXPECT_NO_THROW(compile(job)) << to_line(job);
}

class RandomVerification : public ::testing::TestWithParam<std::uint64_t> {};

TEST_P(RandomVerification, EqualsOneDevice) {
  const Job job = random_job(GetParam(), nullptr);
  const Verification v = verify_layout(job, compile(job), 2);
  EXPECT_EQ(v.diverging, 0) << divergence(job, v).what() << '\n' << to_line(job);
  EXPECT_GT(v.compared(), 100);

  Job again = parse_job(to_line(job), "job.textproto").job;
  for (ShardRule& rule : again.parallel.rules) rule.origin = "random";
  EXPECT_EQ(again, job) << "it cannot be given again: " << to_line(job);
}

INSTANTIATE_TEST_SUITE_P(Seeds, RandomVerification, ::testing::Range(std::uint64_t{1}, std::uint64_t{13}));

}  // namespace
}  // namespace hyperrun::testing

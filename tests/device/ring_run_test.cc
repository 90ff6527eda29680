// Runs with attention round a ring, beside those of the layout sweep: other sizes, other spellings of the
// job, generated text.
#include <gtest/gtest.h>

#include <set>

#include "runtime/base/error.h"
#include "runtime/compile/compile.h"
#include "tests/support/in_process_run.h"
#include "tests/support/jobs.h"
#include "tests/support/relative.h"

namespace hyperrun::testing {
namespace {

Job on_one(Job job) {
  job.supernode.devices = 1;
  job.parallel = {};
  return job;
}

// Losses of a few steps and all gradients of the first, as the layout sweep compares them.
void expect_like_one_device(Job job) {
  job.training.steps = 4;
  const RunResult one = run_in_process(on_one(job)), many = run_in_process(job);
  for (std::size_t s = 0; s < one.losses.size(); ++s)
    EXPECT_NEAR(many.losses[s], one.losses[s], 1e-4 * one.losses[s]) << "step " << s;
  job.training.clip_norm = 0;
  const RunResult first = run_in_process(on_one(job), {.steps = 1}),
                  split = run_in_process(job, {.steps = 1});
  for (const auto& [name, values] : first.moments)
    EXPECT_LT(relative(values, split.moments.at(name)), 1e-5) << name;
}

TEST(RingRun, OfAnOddNumberWithMicroBatches) {
  Job job = small_job("ring:3");
  job.model.sequence = 30;
  job.training.micro_batches = 2;
  expect_like_one_device(job);
}

TEST(RingRun, OfChunksOfOnePosition) {
  Job job = small_job("ring:4");
  job.model.sequence = 8;
  expect_like_one_device(job);
}

Job with_rules(const std::vector<MeshAxis>& mesh, const std::vector<ShardRule>& rules) {
  Job job = small_job("dp:1");
  job.parallel = {mesh, {}, rules};
  for (const MeshAxis& axis : mesh) job.supernode.devices *= axis.size;
  return job;
}

// The rest of the layer is whole on every device; or one ring goes along two axes, in either order, which
// orders the tokens otherwise.
TEST(RingRun, ByRulesOfTheUser) {
  const auto along = [](const char* tensor, const std::vector<std::string>& axes) {
    return ShardRule{tensor, {{"seq", axes}}, "test"};
  };
  expect_like_one_device(with_rules({{"a", 4}}, {along("layers.*.attention.o", {"a"})}));
  for (const auto& ring : {std::vector<std::string>{"a", "b"}, {"b", "a"}})
    expect_like_one_device(with_rules(
        {{"a", 2}, {"b", 2}},
        {along("layers.*.attention.o", ring), along("ids", {"a", "b"}), along("targets", {"a", "b"})}));
}

// A generation keeps its text in the same order, for the tables of positions are the training's.
// In a ring of eight the prompt is cut.
TEST(RingRun, WritesTheTextOfOneDevice) {
  Job job = small_job("ring:2");
  job.training.steps = 15;
  job.run.generate.tokens = 12;
  const std::vector<int> one = run_in_process(on_one(job)).tokens;
  ASSERT_EQ(one.size(), 12U);
  EXPECT_GT(std::set<int>(one.begin(), one.end()).size(), 2U) << "it says one thing only";
  for (const char* parallel : {"ring:2", "ring:8", "ring:2 cp:2", "dp:2 ring:2"}) {
    Job split = small_job(parallel);
    split.training.steps = 15;
    split.run.generate.tokens = 12;
    EXPECT_EQ(run_in_process(split).tokens, one) << parallel;
  }
}

TEST(RingRun, AThreadPerStreamGivesTheSameBitsOnOneHostAndOnFour) {
  Job job = small_job("ring:4");
  job.training.steps = 3;
  for (const int hosts : {1, 4}) {
    const RunResult one = run_in_process(job, {.hosts = hosts});
    const RunResult other = run_in_process(job, {.hosts = hosts, .thread_per_stream = true});
    EXPECT_EQ(other.losses, one.losses) << hosts;
    EXPECT_EQ(other.weights, one.weights) << hosts;
    EXPECT_EQ(other.strays, std::vector<std::string>{}) << hosts;
  }
}

// The purpose of a ring: a sequence that does not fit on one device, for any number of heads.
TEST(RingRun, HoldsASequenceThatOneDeviceCannot) {
  Job job = small_job("ring:4");
  job.model.sequence = 1024;
  job.model.kv_heads = 1;
  job.training.batch = 1;
  job.supernode.hbm = Bytes(6 << 20);
  const Plan one = compile(on_one(job)).plan;
  EXPECT_THROW(check_fits(one, job.supernode.hbm), Error);
  const RunResult run = run_in_process(job, {.steps = 2});
  for (const Bytes b : run.high_water) EXPECT_LE(b, job.supernode.hbm);
  RecordProperty("peak_on_one", std::to_string(one.peak().value));
  RecordProperty("peak_of_ring_4", std::to_string(run.high_water[0].value));
}

}  // namespace
}  // namespace hyperrun::testing

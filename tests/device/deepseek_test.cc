// Latent attention, experts in groups and a module that predicts further, trained and asked for text.
#include <gtest/gtest.h>

#include "tests/support/in_process_run.h"
#include "tests/support/jobs.h"

namespace hyperrun::testing {
namespace {

Job job_of(const std::string& layout) {
  Job job = small_job(layout);
  become_deepseek(job);
  job.training.steps = 12;
  job.run.generate.tokens = 6;
  return job;
}

TEST(DeepSeek, LearnsAndWritesTheSameUnderEveryLayout) {
  const RunResult one = run_in_process(job_of("dp:1"));
  EXPECT_LT(one.losses.back(), one.losses.front() - 0.1) << "it does not learn";
  EXPECT_EQ(one.tokens.size(), 6U);
  for (const char* layout : {"tp:2 sp", "cp:2 ep:2", "ring:2 dp:2", "pp:2 ep:2 zero_bubble"}) {
    const RunResult many = run_in_process(job_of(layout));
    for (std::size_t s = 0; s < one.losses.size(); ++s)
      EXPECT_NEAR(many.losses[s], one.losses[s], 1e-4 * one.losses[s]) << layout << " step " << s;
    EXPECT_EQ(many.tokens, one.tokens) << layout;
    EXPECT_TRUE(many.strays.empty()) << layout;
  }
}

// The bias is kept in parts of two experts here, and moved by what all experts have on average.
TEST(DeepSeek, TheBiasMovesAlikeWhereItIsKeptInParts) {
  Job whole = job_of("dp:1"), parts = job_of("dp:4 zero3");
  const RunResult a = run_in_process(whole, {.steps = 1}), b = run_in_process(parts, {.steps = 1});
  EXPECT_EQ(a.weights.at("layers.1.experts.bias"), b.weights.at("layers.1.experts.bias"));
}

// The module that predicts further uses the first stage's table in the last, which is late in the interleaved
// schedule. Were the table sent there with every micro-batch, the first stage would wait for it for ever.
TEST(DeepSeek, EveryStageGathersItsOwnTable) {
  const auto deep = [](const char* layout) {
    Job job = job_of(layout);
    set_layers(job, 8);
    job.training.micro_batches = 4;
    return job;
  };
  const RunResult one = run_in_process(deep("dp:1"), {.steps = 3});
  const RunResult many = run_in_process(deep("pp:4 dp:2 zero3 interleaved chunks:2"), {.steps = 3});
  ASSERT_EQ(one.losses.size(), many.losses.size());
  for (std::size_t s = 0; s < one.losses.size(); ++s)
    EXPECT_NEAR(many.losses[s], one.losses[s], 1e-4 * one.losses[s]) << "step " << s;
}

}  // namespace
}  // namespace hyperrun::testing

// Sequences that grow together: each one's text is independent of the others.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "runtime/compile/compile.h"
#include "tests/support/in_process_run.h"
#include "tests/support/jobs.h"
#include "tests/support/temporary_directory.h"

namespace hyperrun::testing {
namespace {

Job writer(const std::string& layout) {
  Job job = small_job(layout);
  job.training.steps = 4;
  job.run.generate.tokens = 7;
  return job;
}

// Prompts of 1 to 22 tokens; a sequence has 32.
RunOptions of_prompts() {
  RunOptions options;
  options.prompts.clear();
  for (const int length : {1, 9, 22, 3, 16, 2, 25}) {
    std::vector<std::int32_t>& prompt = options.prompts.emplace_back();
    for (int i = 0; i < length; ++i) prompt.push_back(3 + (7 * length + 11 * i) % 200);
  }
  return options;
}

TEST(Generation, ASequenceGrowsAlikeInAnyCompany) {
  RunOptions options = of_prompts();
  const auto together = run_in_process(writer("dp:1"), options).grown;
  ASSERT_EQ(together.size(), options.prompts.size());
  for (const auto& [id, tokens] : together) EXPECT_EQ(tokens.size(), 7U) << id;
  EXPECT_NE(together.at(0), together.at(1));

  Job several = writer("dp:2 tp:2 sp");
  several.inference.slots = 4;
  EXPECT_EQ(run_in_process(several, options).grown, together) << "two groups of two";
  several.inference.prompts = 4;
  EXPECT_EQ(run_in_process(several, options).grown, together) << "two prompts of each group in a pass";
  several.inference.pages = 4 * 2;  // of 16 positions: room for the whole contexts of two in each group
  EXPECT_EQ(run_in_process(several, options).grown, together) << "no page to spare";
}

// The cache is split: by heads (cp), by the positions of each page (ring), by sequences (dp).
TEST(Generation, OfALongContextIsSharedOut) {
  const RunOptions options = of_prompts();
  const auto alone = run_in_process(writer("dp:1"), options).grown;
  const auto cache = [](const Job& job) {
    Bytes bytes{};
    for (const Buffer& b : compile_generation(job).plan.roles[0].program("decode").buffers)
      if (b.state && b.category == Category::kCache) bytes += b.bytes;
    return bytes;
  };
  Job job = writer("dp:1");
  job.inference.slots = 4;
  const Bytes whole = cache(job);
  for (const std::string layout : {"cp:2", "ring:2", "ring:4", "ring:2 tp:2 sp", "dp:2 ring:2", "pp:2 ring:2",
                                   "ring:8", "ring:2 cp:2"}) {
    job = writer(layout);
    job.inference.slots = 4;
    EXPECT_EQ(run_in_process(job, options).grown, alone) << layout;
    EXPECT_EQ(cache(job) * job.supernode.devices, whole) << layout;
    job.inference.chunk = 8;
    EXPECT_EQ(run_in_process(job, options).grown, alone) << layout << ", prompts in parts";
    job.inference.prompts = 4;
    EXPECT_EQ(run_in_process(job, options).grown, alone) << layout << ", several in a pass";
  }
}

TEST(Generation, ChunksAndPagesChangeNothing) {
  const RunOptions options = of_prompts();
  Job job = writer("dp:1");
  job.inference.slots = 3;
  const auto usual = run_in_process(job, options).grown;
  for (const int chunk : {1, 5, 32})
    for (const int page : {1, 7, 32}) {
      job.inference.chunk = chunk;
      job.inference.page = page;
      EXPECT_EQ(run_in_process(job, options).grown, usual) << chunk << ", " << page;
    }
}

// Weights held in 16 bits are their masters, rounded.
TEST(Generation, ByItselfIsAsAfterTheTraining) {
  const TemporaryDirectory tmp;
  for (const std::string layout : {"dp:1", "dp:1 bf16", "dp:2 tp:2 sp bf16", "pp:2 bf16"}) {
    const Job job = writer(layout);
    RunOptions options = of_prompts();
    options.save_to = (tmp / layout).string();
    const auto after = run_in_process(job, options).grown;
    options.load_from = options.save_to;
    options.save_to = "";
    options.only_generates = true;
    EXPECT_EQ(run_in_process(job, options).grown, after) << layout;
  }
}

TEST(Generation, WhatIsDrawnDependsOnSeedAndNumber) {
  RunOptions options;
  options.prompts = {{5, 6, 7}, {5, 6, 7}};
  Job job = writer("dp:1");
  job.run.generate.temperature = 1.5;
  job.run.generate.top_p = 0.95;
  job.inference.slots = 2;
  const auto drawn = run_in_process(job, options).grown;
  EXPECT_NE(drawn.at(0), drawn.at(1));
  job.inference.slots = 1;
  EXPECT_EQ(run_in_process(job, options).grown, drawn) << "one after the other";
}

}  // namespace
}  // namespace hyperrun::testing

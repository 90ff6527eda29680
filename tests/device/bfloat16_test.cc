// Training in bfloat16: it learns as float32 does, moves half the bytes, and repeats bit by bit.
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <tuple>

#include "runtime/compile/compile.h"
#include "tests/support/in_process_run.h"
#include "tests/support/jobs.h"
#include "tests/support/relative.h"
#include "tests/support/temporary_directory.h"

namespace hyperrun::testing {
namespace {

// A rounding loses up to 2^-8, at random. Losses, means over 256 tokens, stay within a part of that of
// float32's as long as both go the same way, which they do for these twenty steps.
TEST(Bfloat16Training, LearnsAsFloat32) {
  for (const std::string parallel : {"dp:2 tp:2 sp zero1", "dp:2 zero3"}) {
    const RunResult wide = run_in_process(small_job(parallel)),
                    half = run_in_process(small_job(parallel + " bf16"));
    EXPECT_LT(half.losses.back(), 0.85 * half.losses.front());
    ASSERT_EQ(half.losses.size(), wide.losses.size());
    for (std::size_t s = 0; s < wide.losses.size(); ++s)
      EXPECT_NEAR(half.losses[s], wide.losses[s], 0x1p-8 * wide.losses[s]) << parallel << ", step " << s;
    EXPECT_NE(half.losses, wide.losses);
  }
}

// Master weights hold more than bfloat16 could after twenty steps.
TEST(Bfloat16Training, WeightsStayFloat32) {
  const RunResult run = run_in_process(small_job("dp:2 zero1 bf16"));
  for (const auto& [name, values] : run.weights) {
    std::size_t finer = 0;
    for (const float v : values) finer += bf16_to_f32(f32_to_bf16(v)) != v ? 1 : 0;
    EXPECT_GT(finer, values.size() / 2) << name;
  }
}

TEST(Bfloat16Training, RepeatsBitByBit) {
  for (const char* parallel : {"dp:2 tp:2 sp zero1 bf16", "ring:2 cp:2 bf16", "pp:2 dp:2 zero3 bf16"}) {
    Job job = small_job(parallel);
    job.training.micro_batches = 2;
    job.training.steps = 4;
    const RunResult first = run_in_process(job), second = run_in_process(job, {.thread_per_stream = true});
    EXPECT_EQ(first.losses, second.losses) << parallel;
    EXPECT_TRUE(first.weights == second.weights) << parallel;
    EXPECT_TRUE(first.moments == second.moments) << parallel;
    EXPECT_TRUE(first.strays.empty()) << parallel << ": " << first.strays.front();
  }
}

TEST(Bfloat16Training, ResumesBitByBit) {
  for (const char* parallel : {"dp:2 tp:2 sp zero1 bf16", "pp:2 dp:2 zero3 bf16"}) {
    const TemporaryDirectory dir;
    const std::string path = (dir / "checkpoint").string();
    Job job = small_job(parallel);
    job.training.micro_batches = 2;
    job.training.steps = 6;
    const RunResult whole = run_in_process(job);
    run_in_process(job, {.save_to = path, .steps = 3});
    const RunResult rest = run_in_process(job, {.load_from = path, .first_step = 3});
    EXPECT_EQ(rest.losses, std::vector<double>(whole.losses.begin() + 3, whole.losses.end())) << parallel;
    EXPECT_TRUE(rest.weights == whole.weights) << parallel;
    EXPECT_TRUE(rest.moments == whole.moments) << parallel;
  }
}

// A layout that splits no sum of a pass changes no bit; nor do recomputation and schedules.
TEST(Bfloat16Training, WhatSplitsNoSumChangesNoBit) {
  Job job = small_job("dp:1 bf16");
  job.model.tied_head = true;
  job.training.micro_batches = 4;
  job.training.steps = 3;
  const RunResult one = run_in_process(job);
  for (const auto& [parallel, policy] : {std::pair{"dp:1 bf16", "full"},
                                         {"dp:1 bf16", "selective"},
                                         {"pp:2 bf16", "none"},
                                         {"pp:2 zero_bubble bf16", "full"},
                                         {"pp:2 gpipe bf16", "selective"}}) {
    Job other = job;
    other.parallel = small_job(parallel).parallel;
    other.supernode.devices = small_job(parallel).supernode.devices;
    other.training.recompute = {{policy, 0, job.model.layers - 1}};
    const RunResult run = run_in_process(other);
    EXPECT_EQ(run.losses, one.losses) << parallel << ", " << policy;
    // Stages add the squares of their own gradients, so in another order: clipping may differ in the last
    // bit.
    for (const auto& [name, values] : one.weights)
      EXPECT_LT(relative(values, run.weights.at(name)), 1e-6) << name << " " << parallel;
  }
}

TEST(Bfloat16Training, GeneratesTheSameOnStages) {
  Job job = small_job("dp:1 bf16");
  job.model.tied_head = true;
  job.training.steps = 2;
  job.run.generate.tokens = 8;
  const RunResult one = run_in_process(job);
  EXPECT_EQ(one.tokens.size(), 8U);
  for (const char* parallel : {"pp:2 bf16", "dp:2 zero3 bf16", "tp:2 bf16"}) {
    Job other = job;
    other.parallel = small_job(parallel).parallel;
    other.supernode.devices = small_job(parallel).supernode.devices;
    EXPECT_EQ(run_in_process(other).tokens, one.tokens) << parallel;
  }
}

// Gradients sent as bfloat16 lose up to 2^-8 in each part, and as much in their sum.
TEST(Bfloat16Gradients, AreSentInHalfOfTheBytesAndLearnAsFloat32) {
  for (const std::string parallel :
       {"dp:4", "dp:2 tp:2 sp zero1", "pp:2 dp:2 bf16", "dp:2 replicas:2 zero1"}) {
    Job job = small_job(parallel);
    job.training.micro_batches = 2;
    const RunResult wide = run_in_process(job);
    job.parallel.gradients = kBfloat16;
    const RunResult half = run_in_process(job), again = run_in_process(job, {.thread_per_stream = true});
    EXPECT_EQ(half.losses, again.losses) << parallel;
    EXPECT_TRUE(half.weights == again.weights) << parallel;
    EXPECT_TRUE(half.strays.empty()) << parallel << ": " << half.strays.front();
    EXPECT_NE(half.losses, wide.losses) << parallel;
    ASSERT_EQ(half.losses.size(), wide.losses.size());
    for (std::size_t s = 0; s < wide.losses.size(); ++s)
      EXPECT_NEAR(half.losses[s], wide.losses[s], 0x1p-8 * wide.losses[s]) << parallel << ", step " << s;
  }
}

// Devices add up nothing larger than a norm's sums in float32. Each gradient's part is rounded where the last
// micro-batch has made it, not in the update.
TEST(Bfloat16Gradients, AreRoundedAsSoonAsTheyAreComplete) {
  Job job = small_job("dp:4");
  job.training.micro_batches = 2;
  job.parallel.gradients = kBfloat16;
  const Program program = compile(job).plan.roles[0].program("train");
  int rounded = 0, before_a_product = 0;
  for (std::size_t i = 0; i < program.instrs.size(); ++i) {
    const Instr& instr = program.instrs[i];
    const auto* c = std::get_if<instr::Collective>(&instr.op);
    if (c != nullptr && c->inner > 64) {
      EXPECT_EQ(c->dtype, DType::kBF16) << i;
    }
    if (!std::holds_alternative<instr::Cast>(instr.op) || instr.out[0].dtype != DType::kBF16) continue;
    ++rounded;
    for (std::size_t j = i + 1; j < program.instrs.size(); ++j)
      if (program.instrs[j].stream == StreamKind::kCube) {
        ++before_a_product;
        break;
      }
  }
  EXPECT_EQ(rounded, 2 * 9 + 3);
  EXPECT_GT(before_a_product, 15);
}

// The copy of a weight is made once a step, for any number of micro-batches.
TEST(Bfloat16Training, CastsOnceAStep) {
  for (const char* parallel : {"dp:2 bf16", "dp:2 zero1 bf16", "dp:2 zero3 bf16"}) {
    Job job = small_job(parallel);
    job.training.micro_batches = 4;
    int casts = 0;
    const Program program = compile(job).plan.roles[0].program("train");
    for (const Instr& i : program.instrs) casts += std::holds_alternative<instr::Cast>(i.op) ? 1 : 0;
    EXPECT_EQ(casts, 2 * 9 + 3) << parallel;
  }
}

}  // namespace
}  // namespace hyperrun::testing

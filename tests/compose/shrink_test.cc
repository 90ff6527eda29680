// A small model in place of a large one: it has the same instructions, which wait for the same ones.
#include "runtime/compose/shrink.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "runtime/base/error.h"
#include "runtime/compile/compile.h"
#include "runtime/ir/shrink.h"
#include "tests/support/jobs.h"

namespace hyperrun::testing {
namespace {

using ::testing::ContainerEq;
using ::testing::HasSubstr;

// A job with a large model that is executed to scale.
Job large_job(const std::string& parallel) {
  Job job = small_job(parallel);
  job.model.hidden *= 8, job.model.head_dim *= 8, job.model.ffn *= 8, job.model.vocab *= 8;
  job.model.sequence *= 8;
  job.supernode.hbm = kGiB * 64;
  set_layers(job, 8);
  job.run.clock = kPaced;
  job.run.shrink = {.depth = 2, .width = 8, .sequence = 8, .vocab = 8, .batch = 1};
  return job;
}

std::set<std::string> describe_waits(const std::vector<Event>& waits) {
  std::set<std::string> list;
  for (const Event& e : waits) list.insert(std::string(name(e.stream)) + " " + std::to_string(e.seq));
  return list;
}

class Shrunk : public ::testing::TestWithParam<const char*> {};

TEST_P(Shrunk, TheSameInstructionsWaitForTheSame) {
  const Job job = large_job(GetParam());
  const Scaled s = compile_to_scale(job, compile(job).plan.peak());
  EXPECT_EQ(s.job.model.layers, 4);
  EXPECT_EQ(s.job.run.shrink, ShrinkSpec{});
  EXPECT_LT(s.plan.peak().value * 30, s.original.peak().value);
  const auto filled = [](const Plan& plan, const Job& of) {
    return static_cast<double>(plan.peak().value) / static_cast<double>(of.supernode.hbm.value);
  };
  EXPECT_NEAR(filled(s.plan, s.job), filled(compile(job).plan, job), 1e-4);
  ASSERT_EQ(s.plan.roles.size(), s.original.roles.size());
  for (std::size_t r = 0; r < s.plan.roles.size(); ++r) {
    const Program &small = s.plan.roles[r].program("train"), &original = s.original.roles[r].program("train");
    ASSERT_EQ(small.instrs.size(), original.instrs.size());
    for (std::size_t i = 0; i < small.instrs.size(); ++i) {
      ASSERT_EQ(name(small.instrs[i].op), name(original.instrs[i].op)) << i;
      EXPECT_THAT(describe_waits(small.instrs[i].waits),
                  ContainerEq(describe_waits(original.instrs[i].waits)))
          << i;
    }
  }
}

TEST_P(Shrunk, MovesWhenTheOriginalMoves) {
  Job job = large_job(GetParam());
  job.memory.policy = "hyperoffload";
  job.supernode.pool = kGiB * 1024;
  job.supernode.hbm = Bytes(compile(job).plan.peak().value * 7 / 10);
  const Compiled all = compile(job);
  ASSERT_LE(all.plan.peak(), job.supernode.hbm);
  const Scaled s = compile_to_scale(job, all.plan.peak());
  EXPECT_LE(s.plan.peak(), s.job.supernode.hbm);
  for (std::size_t r = 0; r < s.plan.roles.size(); ++r) {
    const Program &small = s.plan.roles[r].program("train"), &original = s.original.roles[r].program("train");
    ASSERT_EQ(small.instrs.size(), original.instrs.size());
    int transfers = 0;
    for (std::size_t i = 0; i < small.instrs.size(); ++i) {
      EXPECT_EQ(beyond_hbm(small.instrs[i].op), beyond_hbm(original.instrs[i].op)) << i;
      transfers += beyond_hbm(small.instrs[i].op) == Tier::kPool;
    }
    EXPECT_GT(transfers, 0) << "role " << r;
  }
}

TEST_P(Shrunk, TheOriginalHasFewerLayersAndElseItsSizes) {
  const Job job = large_job(GetParam());
  Job less = job;
  set_layers(less, 4);
  less.run.shrink.depth = 1;
  EXPECT_EQ(with_fewer_layers(job), less);
}

INSTANTIATE_TEST_SUITE_P(Layouts, Shrunk,
                         ::testing::Values("dp:2 zero3", "dp:2 tp:2 sp", "tpx:2 tpy:2", "cp:2 dp:2", "ring:2",
                                           "pp:2 dp:2", "pp:2 zero_bubble bf16"),
                         [](const auto& p) { return test_title(p.param); });

Job large_generation(const std::string& parallel, std::int32_t chunk) {
  Job job = large_job(parallel);
  job.inference = {.slots = 4, .context = 1024, .chunk = chunk};
  return job;
}

TEST(ShrunkGeneration, TheSameInstructionsMoveTheSame) {
  for (const char* parallel : {"dp:2", "tp:2 sp", "pp:2 tp:2 bf16"}) {
    Job job = large_generation(parallel, 64);
    job.memory.policy = "hyperoffload", job.memory.tensors = {"cache"};
    job.supernode.pool = kGiB * 1024;
    job.supernode.hbm = Bytes(compile_generation(job).plan.peak().value * 9 / 10);
    const Plan all = compile_generation(job).plan;
    const Scaled s = compile_generation_to_scale(job, all.peak());
    EXPECT_LT(s.plan.peak().value * 30, s.original.peak().value) << parallel;
    for (const char* name : {"prefill", "decode"})
      for (std::size_t r = 0; r < s.plan.roles.size(); ++r) {
        const Program &small = s.plan.roles[r].program(name), &original = s.original.roles[r].program(name);
        ASSERT_EQ(small.instrs.size(), original.instrs.size()) << parallel << name;
        int transfers = 0;
        for (std::size_t i = 0; i < small.instrs.size(); ++i) {
          EXPECT_EQ(beyond_hbm(small.instrs[i].op), beyond_hbm(original.instrs[i].op)) << i;
          transfers += beyond_hbm(small.instrs[i].op) == Tier::kPool;
        }
        EXPECT_GT(transfers, 0) << parallel << name;
      }
  }
}

// The original splits the 8 tokens of a chunk over two devices. The small model's chunk is one token, which
// cannot be split, so its instructions differ.
TEST(ShrunkGeneration, AnotherLayoutIsRefused) {
  Job job = large_generation("tp:2 sp", 8);
  job.memory.policy = "hyperoffload", job.memory.tensors = {"cache"};
  job.supernode.pool = kGiB * 1024;
  job.supernode.hbm = Bytes(compile_generation(job).plan.peak().value * 9 / 10);
  try {
    compile_generation_to_scale(job, compile_generation(job).plan.peak());
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.place(), "run.shrink");
    EXPECT_EQ(e.code(), Code::kBadLayout);
  }
}

TEST(Shrink, ASmallModelThatCannotBeCompiledIsNamed) {
  Job job = large_job("dp:2");
  job.run.shrink.batch = job.training.batch;  // one sequence, for two devices
  try {
    compile_to_scale(job, compile(job).plan.peak());
    FAIL();
  } catch (const Error& e) {
    EXPECT_THAT(e.place(), HasSubstr("run.shrink"));
    EXPECT_THAT(e.cause(), HasSubstr("the small model"));
  }
}

TEST(ShrinkJob, KeepsWindowsAndWhatLayersHave) {
  Job job = large_job("dp:1");
  job.model.name = "qwen3_moe";
  job.model.window = 64;
  job.model.window_layers = {{2, 3}, {6, 7}};
  job.model.experts = {.count = 4, .ffn = 64, .dense_layers = 2, .dense = {{4, 5}}};
  job.model.rope_scaling = {.type = "longrope",
                            .factor = 2,
                            .original_sequence = 8,
                            .short_factor = std::vector<double>(32, 1),
                            .long_factor = std::vector<double>(32, 2)};
  const ModelSpec small = shrunk(job).model;
  EXPECT_EQ(small.window, 8);
  for (int l = 0; l < 4; ++l) {
    EXPECT_EQ(small.window_of(l) > 0, job.model.window_of(2 * l) > 0) << l;
    EXPECT_EQ(small.experts.in_layer(l), job.model.experts.in_layer(2 * l)) << l;
  }
  EXPECT_EQ(small.rope_scaling.short_factor.size(), 4U);
}

}  // namespace
}  // namespace hyperrun::testing

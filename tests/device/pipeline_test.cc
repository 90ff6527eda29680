// Pipelines: a schedule changes the order of events and never a number. Memory and messages are as the plan
// and the formula say.
#include <gtest/gtest.h>

#include <map>

#include "runtime/compile/compile.h"
#include "tests/support/in_process_run.h"
#include "tests/support/jobs.h"
#include "tests/support/temporary_directory.h"

namespace hyperrun::testing {
namespace {

Job job_of(const std::string& parallel, int layers = 4, int micro_batches = 4) {
  Job job = small_job(parallel);
  set_layers(job, layers);
  job.training.micro_batches = micro_batches;
  job.training.steps = 3;
  return job;
}

void expect_identical(const RunResult& a, const RunResult& b) {
  EXPECT_EQ(a.losses, b.losses);
  EXPECT_EQ(a.grad_norms, b.grad_norms);
  EXPECT_TRUE(a.weights == b.weights);
  EXPECT_TRUE(a.moments == b.moments);
  EXPECT_EQ(a.tokens, b.tokens);
}

// Each stage adds its micro-batches in the same order under each of them.
TEST(Pipeline, EverySchedulesBitsAreTheSame) {
  for (const char* more : {"", " dp:2 zero1", " dp:2 zero3"}) {
    const RunResult one = run_in_process(job_of(std::string("pp:2") + more));
    ASSERT_EQ(one.losses.size(), 3U);
    for (const char* schedule : {" gpipe", " zero_bubble"})
      expect_identical(run_in_process(job_of(std::string("pp:2") + more + schedule)), one);
  }
}

TEST(Pipeline, RecomputationChangesNoBit) {
  for (const char* parallel : {"pp:2", "pp:2 zero_bubble", "pp:2 tp:2 sp interleaved chunks:2"}) {
    Job job = job_of(parallel);
    const RunResult kept = run_in_process(job);
    job.training.recompute = {{"full", 0, 3}};
    expect_identical(run_in_process(job), kept);
    job.training.recompute = {{"selective", 1, 2}};
    expect_identical(run_in_process(job), kept);
  }
}

TEST(Pipeline, AThreadPerStreamIsBitwiseOneThread) {
  for (const char* parallel : {"pp:2", "pp:2 dp:2 zero1 zero_bubble", "pp:4 interleaved chunks:2"}) {
    Job job = job_of(parallel, 8);
    job.model.tied_head = true;
    job.run.generate.tokens = 3;
    expect_identical(run_in_process(job, {.thread_per_stream = true}), run_in_process(job));
  }
}

TEST(Pipeline, AcrossHostsAllIsTheSame) {
  for (const char* parallel : {"pp:2", "pp:4 zero_bubble", "pp:2 tp:2", "tp:2 pp:2"}) {
    const RunResult one = run_in_process(job_of(parallel)),
                    two = run_in_process(job_of(parallel), {.hosts = 2});
    ASSERT_EQ(one.losses.size(), two.losses.size());
    for (std::size_t s = 0; s < one.losses.size(); ++s)
      EXPECT_NEAR(one.losses[s], two.losses[s], 1e-5 * one.losses[s]) << parallel;
  }
}

TEST(Pipeline, EachDeviceHoldsItsStagesAlone) {
  Job job = job_of("pp:2");
  job.parallel.pipeline.stages = {{0, 1}, {1, 3}};
  const Plan plan = compile(job).plan;
  ASSERT_EQ(plan.roles.size(), 2U);
  const auto has = [&](std::size_t role, const std::string& name) {
    for (const StateTensor& t : plan.roles[role].state)
      if (t.name == name) return true;
    return false;
  };
  for (int l = 0; l < 4; ++l) {
    const std::string name = "layers." + std::to_string(l) + ".ffn.up";
    EXPECT_EQ(has(0, name), l == 0) << l;
    EXPECT_EQ(has(1, name), l != 0) << l;
  }
  EXPECT_TRUE(has(0, "embed"));
  EXPECT_FALSE(has(1, "embed"));
  EXPECT_TRUE(has(1, "head"));
}

// Both stages hold a tied weight, and the same bits of it; its optimizer state lies on one.
TEST(Pipeline, TiedWeightsStayTheSame) {
  for (const char* parallel : {"pp:2", "pp:4 dp:2 zero1", "pp:2 dp:2 zero3"}) {
    Job job = job_of(parallel);
    job.model.tied_head = true;
    const RunResult r = run_in_process(job);
    EXPECT_EQ(r.strays, std::vector<std::string>{}) << parallel;
    const Plan plan = compile(job).plan;
    int weights = 0, moments = 0;
    for (const Role& role : plan.roles)
      for (const StateTensor& t : role.state) {
        weights += t.name == "embed" ? 1 : 0;
        moments += t.name == "embed.adam_m" ? 1 : 0;
      }
    EXPECT_EQ(weights, 2) << parallel;
    EXPECT_EQ(moments, 1) << parallel;
  }
}

// The embedding and the head are on the stages that the job names.
TEST(Pipeline, AnyPlacementOfStagesIsTheSameModel) {
  Job plain = job_of("dp:1", 4, 4);
  const RunResult one = run_in_process(plain);
  for (const auto& stages : std::vector<std::vector<PipelineSpec::Stage>>{
           {{1, 0}, {0, 2}, {1, 2}, {0, 0}}, {{0, 1}, {1, 1}, {1, 1}, {0, 1}}, {{1, 3}, {0, 1}}})
    for (const char* schedule : {"gpipe", "1f1b", "zero_bubble"}) {
      Job job = job_of("pp:2");
      job.parallel.pipeline.schedule = schedule;
      job.parallel.pipeline.stages = stages;
      const RunResult r = run_in_process(job);
      for (std::size_t s = 0; s < one.losses.size(); ++s)
        EXPECT_NEAR(r.losses[s], one.losses[s], 1e-4 * one.losses[s]) << schedule << stages.size();
    }
}

// Batch x sequence x hidden floats from stage to stage and their gradients back, for each micro-batch.
TEST(Pipeline, SendsActivationsAndTheirGradients) {
  for (const char* parallel : {"pp:4", "pp:4 zero_bubble", "pp:2 interleaved chunks:2"}) {
    const Job job = job_of(parallel);
    const RunResult r = run_in_process(job);
    const std::int64_t all = std::int64_t{job.training.batch} * job.model.sequence * job.model.hidden * 4;
    const auto borders = static_cast<std::int64_t>(job.parallel.pipeline.stages.size()) - 1;
    std::int64_t sent = 0, count = 0;
    for (const InvocationStats& s : r.stats)
      for (const Traffic& t : s.traffic)
        if (t.kind.collective == "recv") sent += t.bytes.value, count += t.count;
    EXPECT_EQ(sent, 2 * borders * all) << parallel;
    EXPECT_EQ(count, 2 * borders * job.training.micro_batches) << parallel;
  }
}

TEST(Pipeline, CheckpointsFitAnyStages) {
  TemporaryDirectory dir;
  const std::string path = (dir / "checkpoint").string();
  Job staged = job_of("pp:2 dp:2 zero1 interleaved chunks:2");
  staged.model.tied_head = true;
  const RunResult saved = run_in_process(staged, {.save_to = path, .steps = 2});
  const RunResult whole = run_in_process(staged);
  const RunResult rest = run_in_process(staged, {.load_from = path, .first_step = 2});
  EXPECT_EQ(rest.losses, std::vector<double>(whole.losses.begin() + 2, whole.losses.end()));
  EXPECT_TRUE(rest.weights == whole.weights);
  for (const char* other : {"dp:1", "pp:4", "tp:2 pp:2"}) {
    Job job = job_of(other);
    job.model.tied_head = true;
    const RunResult loaded = run_in_process(job, {.load_from = path, .first_step = 2, .steps = 2});
    EXPECT_TRUE(loaded.weights == saved.weights) << other;
    EXPECT_TRUE(loaded.moments == saved.moments) << other;
    EXPECT_EQ(loaded.strays, std::vector<std::string>{}) << other;
  }
}

TEST(Pipeline, TheSameTextIsGenerated) {
  for (const bool tied : {false, true}) {
    Job plain = job_of("dp:1", 4, 1);
    plain.training.steps = 12;
    plain.model.tied_head = tied;
    plain.run.generate.tokens = 8;
    const RunResult one = run_in_process(plain);
    ASSERT_EQ(one.tokens.size(), 8U);
    for (const char* parallel : {"pp:2", "pp:4", "pp:2 tp:2", "pp:2 interleaved chunks:2"}) {
      Job job = job_of(parallel, 4, 1);
      job.training.steps = 12;
      job.model.tied_head = tied;
      job.run.generate.tokens = 8;
      EXPECT_EQ(run_in_process(job).tokens, one.tokens) << parallel;
    }
  }
}

}  // namespace
}  // namespace hyperrun::testing

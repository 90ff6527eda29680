// The redistributions that `hyperrun check` lists. Their bytes equal those of the simulator, and so those of
// execution. For each strategy, the tensors that it is known to move have the right reasons.
#include "runtime/forecast/redistributions.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "runtime/report/table.h"
#include "runtime/sim/simulate.h"
#include "tests/support/jobs.h"

namespace hyperrun::testing {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;

std::vector<ListedStep> listed(const Job& job) { return list_redistributions(compile(job), job)[0]; }

// Each redistribution as a line "TENSOR CHANGE OPERATION AXES: REASON".
std::vector<std::string> lines(const std::vector<ListedStep>& list) {
  std::vector<std::string> all;
  for (const ListedStep& s : list)
    all.push_back(s.tensor + " " + s.change + " " + s.operation + " " + s.axes + ": " + s.reason);
  return all;
}

void expect(const std::string& parallel, const std::vector<std::string>& wanted) {
  const auto all = lines(listed(small_job(parallel)));
  for (const std::string& line : wanted) EXPECT_THAT(all, Contains(line)) << parallel;
}

constexpr const char* kStrategies[] = {"",
                                       "dp:2",
                                       "dp:2 zero1",
                                       "dp:2 zero2",
                                       "dp:4 zero3",
                                       "tp:2",
                                       "dp:2 tp:2 sp zero1",
                                       "tpx:2 tpy:2",
                                       "cp:4",
                                       "replicas:2 dp:2 tp:2 sp zero3",
                                       "ring:4",
                                       "ring:2 tp:2 sp",
                                       "pp:2 dp:2 zero1"};

TEST(Redistributions, BytesAreThoseOfTheProgramsCollectives) {
  for (const char* parallel : kStrategies)
    for (const bool recomputed : {false, true}) {
      SCOPED_TRACE(parallel);
      Job job = small_job(parallel);
      job.training.batch = 16;
      job.training.micro_batches = 2;
      if (recomputed) job.training.recompute = {{"full", 0, job.model.layers - 1}};
      const Compiled compiled = compile(job);
      using ByKind = std::map<std::pair<std::string, std::string>, std::int64_t>;  // collective, axes
      ByKind in_list, in_program;
      const std::vector<ListedStep> list = list_redistributions(compiled, job)[0];
      for (const ListedStep& s : list)
        if (s.operation != "slice") in_list[{s.operation, s.axes}] += s.bytes * s.times;
      const SimResult run =
          simulate(compiled.plan, "train", job.supernode, Topology::one_host(job.supernode.devices));
      for (const Traffic& t : run.stats(0).traffic)
        in_program[{t.kind.collective, t.kind.axes}] += t.bytes.value;
      EXPECT_EQ(in_list, in_program);
      EXPECT_EQ(in_list.empty(), *parallel == 0);
    }
}

TEST(Redistributions, AreTheSameWhereTensorsMoveOrAreMadeAgain) {
  Job job = small_job("dp:2 tp:2 sp");
  set_layers(job, 4);
  const Compiled kept = compile(job);
  job.supernode.hbm = kept.plan.peak() * 9 / 10;
  job.supernode.pool = kGiB;
  job.memory.policy = "hyperoffload";
  for (const double bandwidth : {1e6, 1e12}) {
    job.supernode.pool_bandwidth = bandwidth;
    const Compiled moved = compile(job);
    ASSERT_GT(moved.plan.roles[0].program("train").instrs.size(),
              kept.plan.roles[0].program("train").instrs.size());
    EXPECT_EQ(redistribution_table(list_redistributions(moved, job)[0]),
              redistribution_table(list_redistributions(kept, job)[0]));
  }
}

TEST(Redistributions, EachHasAReason) {
  for (const char* parallel : kStrategies) {
    SCOPED_TRACE(parallel);
    const auto list = listed(small_job(parallel));
    for (const ListedStep& step : list) EXPECT_FALSE(step.reason.empty()) << step.tensor;
  }
}

TEST(Redistributions, DataParallel) {
  expect("dp:2",
         {"layers.*.ffn.up.grad partial:dp -> whole all-reduce dp: gradient: summed over dp, kept as its "
          "weight is",
          "loss partial:dp -> whole all-reduce dp: loss is reported: summed over dp"});
}

TEST(Redistributions, TensorParallel) {
  expect("tp:2",
         {"layers.*.ffn.down.out partial:tp -> whole all-reduce tp: partial sums over tp are completed for "
          "layers.*.ffn.add",
          "loss.max partial:tp -> whole all-reduce tp: partial maxima over tp are completed for "
          "loss.rescale"});
}

TEST(Redistributions, SequenceParallel) {
  expect("tp:2 sp",
         {"embed.residual partial:tp -> seq:tp reduce-scatter tp: declared: preset sp says "
          "embed.residual is split over tp along seq",
          "layers.*.attention.norm.out seq:tp -> whole all-gather tp: layers.*.attention.wq.product "
          "takes seq whole",
          "layers.*.ffn.down.out partial:tp -> seq:tp reduce-scatter tp: partial sums over tp are "
          "completed for layers.*.ffn.add, which takes seq over tp (preset sp)"});
}

TEST(Redistributions, TwoDimensions) {
  expect("tpx:2 tpy:2",
         {"layers.*.ffn.up.out partial:tpy -> seq:tpy reduce-scatter tpy: declared: preset tp2d says "
          "layers.*.ffn.up.out is split over tpy along seq"});
}

// Experts are split in their width under sequence parallelism: tokens are gathered, and their partial sums
// are reduce-scattered.
TEST(Redistributions, ExpertTensorParallel) {
  Job job = small_job("tp:2 sp etp");
  job.model.experts = {.count = 4, .choices = 2, .ffn = 16};
  const auto all = lines(listed(job));
  EXPECT_THAT(
      all,
      Contains(HasSubstr("layers.*.ffn.norm.out seq:tp -> whole all-gather tp: layers.*.experts.dispatch")));
  EXPECT_THAT(all, Contains(HasSubstr("layers.*.experts.out partial:tp -> seq:tp reduce-scatter tp")));
  for (const std::string& line : all)
    EXPECT_THAT(line, ::testing::Not(HasSubstr("experts.down.out "))) << "rows stay";
}

TEST(Redistributions, Zero1) {
  const std::string update = "update: the optimizer's state lies over dp (preset zero1)";
  expect(
      "dp:2 zero1",
      {"layers.*.ffn.up.grad partial:dp -> ffn:dp reduce-scatter dp: gradient: summed over dp to where the "
       "optimizer's state lies, over dp (preset zero1)",
       "layers.*.ffn.up whole -> ffn:dp slice dp: " + update,
       "layers.*.ffn.up.next ffn:dp -> whole all-gather dp: " + update});
}

TEST(Redistributions, Zero2) {
  expect("dp:2 zero2",
         {"layers.*.ffn.up.grad partial:dp -> ffn:dp reduce-scatter dp: gradient: summed over dp in "
          "each micro-batch, kept over dp (preset zero2)"});
}

TEST(Redistributions, Zero3) {
  expect("dp:2 zero3",
         {"layers.*.ffn.up ffn:dp -> whole all-gather dp: weight gathered to be used, stored over dp "
          "(preset zero3)"});
}

// Every stage slices tables such as that of rotary positions itself. Only the residual stream is sent between
// stages.
TEST(Redistributions, StagesSendWhatLayersMakeAndNothingElse) {
  for (const ListedStep& step : listed(small_job("pp:2 ring:2")))
    if (step.operation == "send" || step.operation == "recv") {
      EXPECT_THAT(step.tensor, HasSubstr("residual"));
    }
}

TEST(Redistributions, ARuleOfTheUserIsNamedByItsPlace) {
  Job job = small_job("tp:2");
  job.parallel.rules = {{"embed.residual", {{"seq", {}}}, "job.textproto:12:3"},
                        {"layers.*.ffn.residual", {{"hidden", {"tp"}}}, "job.textproto:13:3"}};
  const auto all = lines(listed(job));
  EXPECT_THAT(all, Contains(HasSubstr("job.textproto:12:3 says embed.residual is complete")));
  EXPECT_THAT(all, Contains(HasSubstr("layers.*.ffn.add, which takes hidden over tp (job.textproto:13:3)")));
}

TEST(Redistributions, WhatIsRepeatedInTheBackwardPassSaysSo) {
  Job job = small_job("tp:2 sp");
  job.training.recompute = {{"full", 0, job.model.layers - 1}};
  const auto all = lines(listed(job));
  EXPECT_THAT(all, Contains(HasSubstr(", computed again")));
}

TEST(Redistributions, CountsLayersAndMicroBatches) {
  Job job = small_job("dp:2 tp:2");
  job.training.batch = 12;
  job.training.micro_batches = 3;
  for (const ListedStep& r : listed(job)) {
    if (r.tensor == "layers.*.ffn.down.out") {
      EXPECT_EQ(r.times, 3 * job.model.layers);
    }
    if (r.tensor == "layers.*.ffn.down.grad") {
      EXPECT_EQ(r.times, job.model.layers);
    }
  }
}

}  // namespace
}  // namespace hyperrun::testing

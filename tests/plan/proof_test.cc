// The small world in which plans are proven.
#include "runtime/plan/proof.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/base/error.h"
#include "runtime/compile/compile.h"
#include "runtime/compose/shrink.h"
#include "tests/plan/worlds.h"

namespace hyperrun::testing {
namespace {

using ::testing::ElementsAre;

TEST(ProofWorld, HasTheStructureAndWidthsOfTheJob) {
  Job job = planned_mixture(64, 32, 256);
  job.supernode.hbm = kGiB * 16, job.supernode.pool = kGiB * 64;
  const Job world = proof_world(job, 8);
  EXPECT_EQ(world.supernode.devices, 8);
  EXPECT_EQ(world.model.layers, 4);
  EXPECT_EQ(world.model.experts.dense_layers, 1);
  EXPECT_EQ(world.model.hidden, job.model.hidden);
  EXPECT_EQ(world.model.experts.count, job.model.experts.count);
  EXPECT_EQ(world.training.batch, 8) << "one each, though four are theirs";
  EXPECT_GT(world.supernode.hbm, job.supernode.hbm)
      << "an eighth of the devices has more than 4/32 of the state";
  EXPECT_LT(world.supernode.hbm.value, job.supernode.hbm.value * 2);
  // Memory of all devices together stays in proportion.
  EXPECT_NEAR(
      static_cast<double>(world.supernode.pool.value) / static_cast<double>(job.supernode.pool.value),
      static_cast<double>(world.supernode.hbm.value) / static_cast<double>(job.supernode.hbm.value) / 8,
      1e-6);
}

TEST(ProofWorld, IsTheJobWhereThatIsSmall) {
  Job job = planned_llama(8, 4, 8);
  job.supernode.hbm = kGiB * 16;
  Job world = proof_world(job, 8);
  world.run = job.run;
  EXPECT_EQ(world, job);
  job.training.batch = 4;
  EXPECT_EQ(proof_world(job, 8).training.batch, 4);
}

TEST(ProofWorld, IsNoLargerThanTheJobAndHasAPacedClock) {
  Job job = planned_llama(8, 4, 16);
  EXPECT_THROW(proof_world(job, 16), Error);
  job.supernode.machine->feeder.in_order = true;
  EXPECT_THROW(proof_world(job, 8), Error);
}

TEST(ProofWorld, RefusesOneDevice) {
  try {
    proof_world(planned_llama(1, 2, 4), 2);
    FAIL() << "one device has a small world of two";
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), Code::kUsage);
    EXPECT_THAT(e.remedy(), ::testing::HasSubstr("without --prove"));
  }
}

TEST(ProofWorld, ShrinksToASmallModelOfTheSameInstructions) {
  for (Job job : {planned_llama(8, 4, 16), planned_mixture(8, 4, 16)}) {
    job = proof_world(job, 8);
    const std::vector<ShrinkSpec> shrinks = proof_shrinks(job);
    EXPECT_EQ(job.model.hidden / shrinks.front().width, 64);
    EXPECT_EQ(job.model.sequence / shrinks.front().sequence, 64);
    EXPECT_EQ(shrinks.back(), ShrinkSpec{});
    Strategy s;
    s[PlanAxis::kPipeline] = s[PlanAxis::kData] = s[PlanAxis::kTensor] = 2;
    Job executed = job_of(job, s);
    executed.run.clock = kPaced, executed.run.shrink = shrinks.front();
    EXPECT_EQ(compile_to_scale(executed, compile(executed).plan.peak()).job.model.hidden, 64);
  }
}

std::vector<double> times(const std::vector<SimulatedCandidate>& leaders) {
  std::vector<double> list;
  for (const SimulatedCandidate& l : leaders) list.push_back(l.simulated);
  return list;
}

TEST(SpreadOut, TakesTheBestAndDistinguishableOthers) {
  std::vector<SimulatedCandidate> leaders;
  for (const double t : {0.0, 100.0, 101.0, 110.0, 121.0, 122.0, 200.0}) leaders.push_back({.simulated = t});
  EXPECT_THAT(times(spread_out(leaders, 2)), ElementsAre(100, 200));
  EXPECT_THAT(times(spread_out(leaders, 4)), ElementsAre(100, 122, 200)) << "as evenly as there are";
  EXPECT_THAT(times(spread_out(leaders, 100)), ElementsAre(100, 110, 121, 200));
  EXPECT_THAT(spread_out({{.simulated = 0}}, 3), ElementsAre()) << "refused";
}

}  // namespace
}  // namespace hyperrun::testing

// Forecasts of strategies that need offloading, compared with the simulator.
#include "runtime/plan/transfers.h"

#include <gtest/gtest.h>

#include <array>
#include <string>

#include "runtime/plan/constraint.h"
#include "runtime/plan/layer_profile_cache.h"
#include "runtime/plan/simulated_candidate.h"
#include "runtime/plan/space.h"
#include "tests/plan/worlds.h"

namespace hyperrun::testing {
namespace {

struct Case {
  const char* name;
  // Sizes of pp, dp, ep, ring, cp, tpy, tp.
  std::array<std::int32_t, kPlanAxes> sizes;
  std::int32_t zero = 0, samples = 1, chunks = 1;
  PlanSchedule schedule = PlanSchedule::k1f1b;
  PlanRecompute recompute = PlanRecompute::kNone;
};

// The forecast neglects that plans are not optimal, gaps of placement, and that a tensor waiting for
// bandwidth stays in HBM, so that more has to move.
constexpr double kLonger = 1.35, kShorter = 1.1;

Job short_of_hbm() {
  Job job = planned_llama(8, 8, 32);
  job.supernode.hbm = Bytes(2500LL << 20);
  job.supernode.pool = Bytes(1LL << 40);
  return job;
}

Forecast without_transfers(const Job& job, const Strategy& s, LayerProfileCache& cache) {
  const StepProfile& profile = *cache.profile(s);
  return closed_form(s, job.model, micro_batches(s, job.training.batch), {&profile, nullptr},
                     cache.message_time(s, profile));
}

class Transfers : public ::testing::TestWithParam<Case> {};

TEST_P(Transfers, AreForecastNearTheSimulator) {
  const Case& c = GetParam();
  const Job job = short_of_hbm();
  Strategy s;
  s.sizes = c.sizes;
  s.zero = c.zero, s.samples = c.samples, s.chunks = c.chunks;
  s.schedule = c.schedule, s.recompute = c.recompute, s.memory = PlanMemory::kHyperOffload;
  LayerProfileCache cache(job);
  const Forecast fits = without_transfers(job, s, cache);
  ASSERT_GT(fits.memory, job.supernode.hbm.value);
  const Forecast f = with_transfers(fits, Tier::kPool, cache.machine(), job.supernode.hbm);
  const SimulatedCandidate leader = simulate_strategy(job, s, f);
  ASSERT_GT(leader.simulated, 0) << leader.why_not;
  EXPECT_LE(leader.simulated, kLonger * f.time);
  EXPECT_LE(f.time, kShorter * leader.simulated);
  EXPECT_LE(f.bound, leader.simulated);
  EXPECT_NEAR(f.time, fits.time + f.transfer, 1e-6 * f.time);
}

constexpr auto kSelective = PlanRecompute::kSelective, kFull = PlanRecompute::kFull;

INSTANTIATE_TEST_SUITE_P(
    All, Transfers,
    ::testing::Values(
        Case{"of_all_kinds", {1, 8, 1, 1, 1, 1, 1}},
        Case{"of_gradients_each_time", {1, 2, 1, 4, 1, 1, 1}, 0, 1, 1, PlanSchedule::k1f1b, kSelective},
        Case{"of_little", {1, 2, 1, 1, 1, 2, 2}, 0, 4, 1, PlanSchedule::k1f1b, kSelective},
        Case{"of_the_optimizer", {1, 1, 1, 4, 1, 1, 2}, 0, 8, 1, PlanSchedule::k1f1b, kFull},
        Case{"of_many_micro_batches", {1, 2, 1, 2, 2, 1, 1}, 1, 2, 1, PlanSchedule::k1f1b, kFull},
        Case{"in_a_pipeline", {2, 1, 1, 1, 4, 1, 1}, 0, 2, 1, PlanSchedule::k1f1b, kFull},
        Case{"gpipe", {8, 1, 1, 1, 1, 1, 1}, 0, 2, 1, PlanSchedule::kGpipe, kSelective},
        Case{"interleaved", {2, 2, 1, 1, 2, 1, 1}, 1, 1, 4, PlanSchedule::kInterleaved, kSelective},
        Case{"zero_bubble", {2, 1, 1, 1, 4, 1, 1}, 0, 2, 1, PlanSchedule::kZeroBubble, kFull}),
    [](const auto& info) { return std::string(info.param.name); });

class Clipped : public ::testing::TestWithParam<bool> {};

// Fixed bytes are known before transfers are planned. The bound is never more than a plan for very little HBM
// takes. The forecast is near it and never twice as much, where a search would give up.
TEST_P(Clipped, ForecastsTheBytesThatNoPolicyMoves) {
  Job job = planned_llama(8, 4, 8);
  if (!GetParam()) job.training.clip_norm = 0;  // updates may run early
  job.supernode.hbm = Bytes(1 << 20);
  job.supernode.pool = Bytes(1LL << 40);
  LayerProfileCache cache(job);
  constexpr std::int64_t kEach = 193;  // one strategy in so many
  std::int64_t count = 0, compiled = 0, near = 0;
  each_strategy(job, spaces().front(), [&](Strategy s) {
    if (count++ % kEach != 0 || cache.profile(s) == nullptr) return;
    const Forecast f = without_transfers(job, s, cache);
    const Forecast least = closed_form_bound(s, job.model, micro_batches(s, job.training.batch),
                                             {cache.bound_profile(s), nullptr});
    s.memory = PlanMemory::kHyperOffload;
    const SimulatedCandidate leader = simulate_strategy(job, s, {});
    ASSERT_FALSE(leader.fits) << describe(s);
    const auto takes = static_cast<double>(leader.hbm.value), fixed = static_cast<double>(f.fixed);
    EXPECT_LE(least.least_fixed, leader.hbm.value) << describe(s);
    EXPECT_LE(least.least_fixed, f.fixed) << describe(s);
    EXPECT_LE(fixed, 2 * takes) << describe(s);
    ++compiled;
    near += 0.8 * takes < fixed && fixed < 1.25 * takes ? 1 : 0;
  });
  EXPECT_GE(compiled, 10);
  if (GetParam()) {
    EXPECT_GE(10 * near, 9 * compiled) << compiled;
  }
}

INSTANTIATE_TEST_SUITE_P(Gradients, Clipped, ::testing::Bool(), [](const auto& info) {
  return std::string(info.param ? "by_their_norm" : "not_at_all");
});

// Each small tensor pays the tier's latency.
TEST(Transfers, SmallTensorsPayLatencyEach) {
  const Job job = short_of_hbm();
  Strategy s;
  s.sizes = {1, 8, 1, 1, 1, 1, 1};
  LayerProfileCache cache(job);
  const Forecast f = without_transfers(job, s, cache);
  Machine slow = cache.machine();
  slow.pool.latency.value += 1e6;
  const double more = with_transfers(f, Tier::kPool, slow, job.supernode.hbm).time -
                      with_transfers(f, Tier::kPool, cache.machine(), job.supernode.hbm).time;
  // The optimizer has two moments of nine tensors in eight layers, all beyond HBM.
  EXPECT_GT(more, 2 * 8 * 9 * 1e6);
}

TEST(Leaders, WithoutTransfersHaveNoPolicy) {
  const Job job = planned_llama(2, 2, 4);
  Strategy s;
  s[PlanAxis::kData] = 2, s.memory = PlanMemory::kHyperOffload;
  const SimulatedCandidate leader = simulate_or_repair(job, spaces().front(), s, {});
  ASSERT_GT(leader.simulated, 0);
  EXPECT_EQ(leader.strategy.memory, PlanMemory::kNone);
  Space asked = spaces().front();
  asked.only = {constraint_of("memory=hyperoffload")};
  EXPECT_EQ(simulate_or_repair(job, asked, s, {}).strategy.memory, PlanMemory::kHyperOffload);
}

}  // namespace
}  // namespace hyperrun::testing

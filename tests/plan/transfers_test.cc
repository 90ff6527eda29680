// Forecasts of strategies whose tensors do not all fit into HBM, beside the simulator.
#include "runtime/plan/transfers.h"

#include <gtest/gtest.h>

#include <array>
#include <string>

#include "runtime/plan/leader.h"
#include "runtime/plan/piece_table.h"
#include "runtime/plan/space.h"
#include "tests/plan/worlds.h"

namespace hyperrun::testing {
namespace {

struct Case {
  const char* name;
  // pp, dp, ep, ring, cp, tpy, tp
  std::array<std::int32_t, kPlanAxes> sizes;
  std::int32_t zero = 0, samples = 1, chunks = 1;
  PlanSchedule schedule = PlanSchedule::k1f1b;
  PlanRecompute recompute = PlanRecompute::kNone;
};

// What is left out: that no plan is the best there is, which gaps places leave, and that what waits for the
// bandwidth stays in HBM meanwhile, so that more has to move.
constexpr double kLonger = 1.35, kShorter = 1.1;

Job short_of_hbm() {
  Job job = planned_llama(8, 8, 32);
  job.supernode.hbm = Bytes(2500LL << 20);
  job.supernode.pool = Bytes(1LL << 40);
  return job;
}

Forecast without_transfers(const Job& job, const Strategy& s, PieceTable& table) {
  const Pieces& pieces = *table.find(s);
  return closed_form(s, job.model, micro_batches(s, job.training.batch), {&pieces, nullptr},
                     table.message_time(s, pieces));
}

class Transfers : public ::testing::TestWithParam<Case> {};

TEST_P(Transfers, AreForecastNearTheSimulator) {
  const Case& c = GetParam();
  const Job job = short_of_hbm();
  Strategy s;
  s.sizes = c.sizes;
  s.zero = c.zero, s.samples = c.samples, s.chunks = c.chunks;
  s.schedule = c.schedule, s.recompute = c.recompute, s.memory = PlanMemory::kHyperOffload;
  PieceTable table(job);
  const Forecast fits = without_transfers(job, s, table);
  ASSERT_GT(fits.memory, job.supernode.hbm.value);
  const Forecast f = with_transfers(fits, Tier::kPool, table.machine(), job.supernode.hbm);
  const Leader leader = try_strategy(job, s, f);
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

// What no policy moves is known before anything is planned: the bound is never more than a plan for next to
// no HBM takes, and the forecast hardly ever far from it, nor twice as much, where a search gives up.
TEST_P(Clipped, TransfersLeaveWhatNoPolicyMoves) {
  Job job = planned_llama(8, 4, 8);
  if (!GetParam()) job.training.clip_norm = 0;  // updates may come early
  job.supernode.hbm = Bytes(1 << 20);
  job.supernode.pool = Bytes(1LL << 40);
  PieceTable table(job);
  constexpr std::int64_t kEach = 193;  // of those there are
  std::int64_t count = 0, compiled = 0, near = 0;
  each_strategy(job, spaces().front(), [&](Strategy s) {
    if (count++ % kEach != 0 || table.find(s) == nullptr) return;
    const Forecast f = without_transfers(job, s, table);
    const Forecast least =
        least_form(s, job.model, micro_batches(s, job.training.batch), {table.find_least(s), nullptr});
    s.memory = PlanMemory::kHyperOffload;
    const Leader leader = try_strategy(job, s, {});
    ASSERT_FALSE(leader.fits) << words(s);
    const auto takes = static_cast<double>(leader.hbm.value), here = static_cast<double>(f.here);
    EXPECT_LE(least.least_here, leader.hbm.value) << words(s);
    EXPECT_LE(least.least_here, f.here) << words(s);
    EXPECT_LE(here, 2 * takes) << words(s);
    ++compiled;
    near += 0.8 * takes < here && here < 1.25 * takes ? 1 : 0;
  });
  EXPECT_GE(compiled, 10);
  if (GetParam()) {
    EXPECT_GE(10 * near, 9 * compiled) << compiled;
  }
}

INSTANTIATE_TEST_SUITE_P(Gradients, Clipped, ::testing::Bool(), [](const auto& info) {
  return std::string(info.param ? "by_their_norm" : "not_at_all");
});

// Each of many small tensors waits for the tier's latency.
TEST(Transfers, OfSmallTensorsTakeTheLatencyOfEach) {
  const Job job = short_of_hbm();
  Strategy s;
  s.sizes = {1, 8, 1, 1, 1, 1, 1};
  PieceTable table(job);
  const Forecast f = without_transfers(job, s, table);
  Machine slow = table.machine();
  slow.pool.latency.value += 1e6;
  const double more = with_transfers(f, Tier::kPool, slow, job.supernode.hbm).time -
                      with_transfers(f, Tier::kPool, table.machine(), job.supernode.hbm).time;
  // Of eight layers the optimizer has two moments of nine tensors each, and all are beyond.
  EXPECT_GT(more, 2 * 8 * 9 * 1e6);
}

}  // namespace
}  // namespace hyperrun::testing

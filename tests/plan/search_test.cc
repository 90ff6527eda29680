// The search compared with exhaustive simulation in small worlds.
#include "runtime/plan/search.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <string>
#include <vector>

#include "runtime/compile/compile.h"
#include "runtime/plan/balance.h"
#include "runtime/plan/forecast_calibration.h"
#include "runtime/plan/layer_profile_cache.h"
#include "runtime/plan/order_bounds.h"
#include "runtime/plan/pareto.h"
#include "runtime/plan/transfers.h"
#include "runtime/spec/job_reader.h"
#include "tests/plan/worlds.h"

namespace hyperrun::testing {
namespace {

enum class World : std::uint8_t {
  kLayers,
  kExperts,
  kFewHeads,
  kBeyondHbm,
  kSlowBus,
  kUnevenUnits,
  kSoftware
};

// Divides the bandwidth between units of `devices` devices by five.
void slow_down_beyond(int devices, Job& job) {
  Machine machine = machine_of(job.supernode);
  machine.levels = {machine.levels.front(), machine.levels.back()};
  machine.levels.front().devices = devices;
  machine.levels.back().bandwidth.value /= 5;
  job.supernode.machine = std::move(machine);
}

class SmallWorld : public ::testing::TestWithParam<World> {
 protected:
  // The batch has two samples, as each strategy is simulated. With experts four leaders are then not near the
  // best, so that world keeps its four.
  static Job job() {
    Job job = world();
    if (GetParam() != World::kExperts) job.training.batch = 2;
    return job;
  }

 private:
  static Job world() {
    if (GetParam() == World::kExperts) return planned_mixture(4, 2, 4);
    if (GetParam() == World::kLayers) return planned_llama(4, 4, 4);
    if (GetParam() == World::kSoftware) return planned_with_software(4, 2, 4);
    Job job = planned_llama(4, 2, 4);
    if (GetParam() == World::kUnevenUnits) return job.model.vocab = 32001, slow_down_beyond(3, job), job;
    if (GetParam() == World::kSlowBus) {
      job = planned_mixture(4, 2, 4);
      return slow_down_beyond(2, job), job;
    }
    if (GetParam() == World::kBeyondHbm) {
      job.supernode.hbm = Bytes(1'200'000'000);
      job.supernode.pool = Bytes(64'000'000'000);
      return job;
    }
    // With fewer key-value heads than devices, attention is split in one way by two devices and in another by
    // four.
    job.model.heads = 4, job.model.kv_heads = 2;
    job.model.head_dim = 512;
    return job;
  }
};

struct Exhausted {
  double best = std::numeric_limits<double>::infinity();
  std::int64_t strategies = 0, uneven = 0, moved = 0, simulated = 0;
  std::vector<std::pair<Bytes, double>> takes;  // HBM and step in ns of each simulation

  double best_within(Bytes hbm) const {
    double least = std::numeric_limits<double>::infinity();
    for (const auto& [bytes, nanos] : takes)
      if (bytes <= hbm) least = std::min(least, nanos);
    return least;
  }
};

StepProfiles bound_profiles(const Strategy& strategy, LayerProfileCache& cache) {
  StepProfiles least{cache.bound_profile(strategy), nullptr};
  if (strategy.extra_recompute_layers == 0) return least;
  Strategy more = strategy;
  more.recompute = *stronger_recompute(strategy.recompute);
  least.extra = cache.bound_profile(more);
  return least;
}

// Simulates a strategy in every axis order, and expects its bounds to hold.
void exhaust(const Job& job, const Strategy& strategy, LayerProfileCache& cache, Exhausted& all) {
  ++all.strategies;
  const StepProfiles least = bound_profiles(strategy, cache);
  OrderBounds bounds(job, cache);
  Strategy none = strategy;
  none.extra_recompute_layers = 0;
  const double bound_with_extra = bounds.of(none).bound_with_extra;
  const std::int32_t m = micro_batches(strategy, job.training.batch);
  for (const Strategy& s : orders_of(strategy)) {
    SimulatedCandidate leader = simulate_strategy(job, s, {});
    if (!leader.fits && job.supernode.pool.value > 0 && s.extra_recompute_layers == 0) {
      Strategy moves = s;
      moves.memory = PlanMemory::kHyperOffload;
      leader = simulate_strategy(job, moves, {});
      all.moved += leader.simulated > 0 ? 1 : 0;
    }
    if (leader.simulated == 0) continue;
    ++all.simulated;
    all.best = std::min(all.best, leader.simulated);
    all.takes.emplace_back(leader.hbm, leader.simulated);
    ASSERT_NE(least.base, nullptr) << describe(s) << " is left out: " << cache.why_not(s);
    const Forecast f = closed_form_bound(s, job.model, m, least);
    EXPECT_LE(f.bound, leader.simulated) << describe(s);
    EXPECT_LE(bounds.in_own_order(s), leader.simulated) << describe(s);
    EXPECT_LE(bounds.of(strategy).in_any_order, leader.simulated) << describe(s) << ", of all orders";
    EXPECT_LE(bound_with_extra, leader.simulated)
        << describe(s) << ", of any number of layers that recompute more";
    EXPECT_LE(least_transfers(f, cache.machine().pool, job.supernode.hbm), leader.simulated) << describe(s);
    EXPECT_LE(f.least_fixed, leader.hbm.value) << describe(s);
    if (leader.strategy.memory == PlanMemory::kNone) {
      EXPECT_LE(f.least_memory, leader.hbm.value) << describe(s);
    }
    if (s.extra_recompute_layers > 0) continue;
    const StepProfile* profile = cache.profile(s);
    ASSERT_NE(profile, nullptr) << describe(s);
    const Forecast whole = closed_form(s, job.model, m, {profile, nullptr}, 0);
    EXPECT_LE(with_transfers(whole, Tier::kPool, cache.machine(), job.supernode.hbm).bound, leader.simulated)
        << describe(s);
  }
}

// Simulates every strategy.
Exhausted exhaust(const Job& job) {
  Exhausted all;
  LayerProfileCache cache(job);
  each_strategy(job, spaces().front(), [&](const Strategy& strategy) {
    exhaust(job, strategy, cache, all);
    const StepProfile* profile = cache.bound_profile(strategy);
    if (profile == nullptr) return;
    const std::optional<Strategy> uneven = balanced(strategy, job.model, *profile);
    if (!uneven) return;
    exhaust(job, *uneven, cache, all);
    ++all.uneven;
  });
  return all;
}

void expect_certified(const Job& job, const Search& few, const Exhausted& all) {
  const double found = few.leaders.front().simulated;
  EXPECT_GE(found, all.best);
  EXPECT_LE(found, all.best * (1 + few.gap()) * (1 + 1e-9)) << "the certificate does not hold";
  // A search that simulates everything that may be better has the best.
  const Search many = search(job, {.leaders = 100'000});
  EXPECT_EQ(many.leaders.front().simulated, all.best);
  EXPECT_LE(many.gap(), few.gap());
  EXPECT_TRUE(many.bounds_hold);
}

TEST_P(SmallWorld, HasNothingBetterThanCertified) {
  const Job job = SmallWorld::job();
  const Exhausted all = exhaust(job);
  ASSERT_GT(all.simulated, 50);
  EXPECT_TRUE(GetParam() != World::kLayers || all.uneven > 0);
  EXPECT_TRUE(GetParam() != World::kBeyondHbm || all.moved > 50) << all.moved;
  const Search few = search(job, {.leaders = 4});
  ASSERT_TRUE(few.found());
  EXPECT_EQ(few.strategies, all.strategies);
  expect_certified(job, few, all);
  // A forecast knows the amount of transfers, but not their timing, and nothing of turns and of a feeder.
  const bool unknown = GetParam() == World::kBeyondHbm || GetParam() == World::kSoftware;
  const double near = unknown ? 1.1 : 1.03;
  EXPECT_LE(few.leaders.front().simulated, all.best * near) << "the leaders are not those that lead";
}

// Rematerialisation of experts does not depend on the next stage, so it runs while the stage waits. With two
// micro-batches zero bubble holds the second while no gradient sum exists.
TEST(Search, CertifiesRecomputedExperts) {
  Job job = planned_mixture(4, 4, 4);
  job.training.batch = 2, job.model.experts.dense_layers = 0;
  const Exhausted all = exhaust(job);
  ASSERT_GT(all.simulated, 50);
  expect_certified(job, search(job, {.leaders = 4}), all);
}

// If no update waits for the norm of all gradients, a plan with transfers runs updates early.
TEST(Search, CertifiesEarlyUpdates) {
  Job job = planned_tiny(2, 2, 2, 64, Bytes(std::int64_t{1} << 30));
  job.training.clip_norm = 0;
  job.supernode.hbm = Bytes(search(job, {.leaders = 1}).leaders.front().hbm.value * 6 / 10);
  const Exhausted all = exhaust(job);
  ASSERT_GT(all.moved, 20);
  expect_certified(job, search(job, {.leaders = 4}), all);
}

// The width divides over neighbouring devices, but not over distant ones as well.
TEST(Search, CertifiesWeightsNotSplitAlongASlowAxis) {
  Job job = planned_tiny(6, 2, 6, 64, Bytes(std::int64_t{1} << 30));
  slow_down_beyond(2, job);
  const Exhausted all = exhaust(job);
  ASSERT_GT(all.simulated, 50);
  expect_certified(job, search(job, {.leaders = 4}), all);
}

std::string name_of(const ::testing::TestParamInfo<World>& info) {
  switch (info.param) {
    case World::kLayers: return "Layers";
    case World::kExperts: return "Experts";
    case World::kFewHeads: return "FewHeads";
    case World::kBeyondHbm: return "BeyondHbm";
    case World::kSlowBus: return "SlowBus";
    case World::kUnevenUnits: return "UnevenUnits";
    case World::kSoftware: return "Software";
  }
  return "";
}

INSTANTIATE_TEST_SUITE_P(Of, SmallWorld,
                         ::testing::Values(World::kLayers, World::kExperts, World::kFewHeads,
                                           World::kBeyondHbm, World::kSlowBus, World::kUnevenUnits,
                                           World::kSoftware),
                         name_of);

// Simulates every strategy with every number of extra recomputing layers.
Exhausted exhaust_extra_recompute(const Job& job) {
  Exhausted all;
  LayerProfileCache cache(job);
  each_strategy(job, spaces().front(), [&](const Strategy& even) {
    Strategy s = even;
    const std::int32_t most = stronger_recompute(s.recompute) ? most_layers(s, job.model.layers) : 1;
    for (s.extra_recompute_layers = 0; s.extra_recompute_layers < most; ++s.extra_recompute_layers)
      exhaust(job, s, cache, all);
  });
  return all;
}

TEST(Search, RecomputesInSomeLayersIfNothingElseFits) {
  Job job = planned_llama(2, 5, 4);
  job.supernode.pool = Bytes(0);
  const Search fastest = search(job, {.leaders = 4});
  job.supernode.hbm = Bytes(fastest.leaders.front().hbm.value * 95 / 100);
  const Exhausted all = exhaust_extra_recompute(job);
  ASSERT_GT(all.simulated, 50);
  const Search few = search(job, {.leaders = 8});
  ASSERT_TRUE(few.found());
  const SimulatedCandidate& best = few.leaders.front();
  EXPECT_GT(best.strategy.extra_recompute_layers, 0) << describe(best.strategy);
  EXPECT_LE(best.simulated, all.best * 1.01);
  EXPECT_LE(best.simulated, all.best * (1 + few.gap()) * (1 + 1e-9)) << "the certificate does not hold";
  EXPECT_TRUE(few.bounds_hold);
}

void expect_certified_deeper(const Job& job) {
  const Exhausted all = exhaust_extra_recompute(job);
  ASSERT_GT(all.simulated, 20);
  for (const std::int32_t leaders : {1, 8, 100'000}) {
    const Search s = search(job, {.leaders = leaders});
    ASSERT_TRUE(s.found());
    EXPECT_TRUE(s.bounds_hold);
    EXPECT_LE(s.leaders.front().simulated, all.best * (1 + s.gap()) * (1 + 1e-9))
        << "the certificate does not hold: " << describe(s.leaders.front().strategy);
  }
}

// With too little HBM; for one kind of layers and for two.
TEST(Search, CertifiesRecomputationInSomeLayers) {
  for (Job job : {planned_llama(2, 4, 4), planned_mixture(2, 4, 4)}) {
    job.supernode.pool = Bytes(0);
    const Bytes all_of_it = search(job, {.leaders = 1}).leaders.front().hbm;
    for (const int percent : {97, 92, 86}) {
      job.supernode.hbm = Bytes(all_of_it.value / 100 * percent);
      expect_certified_deeper(job);
    }
  }
}

// By their forecasts strategies fit neither with extra recomputing layers, as padding of small tensors is
// overestimated, nor with transfers. They may still fit.
TEST(Search, CertifiesRecomputationInSomeLayersWithAPool) {
  for (const Job& job :
       {planned_tiny(1, 4, 4, 64, Bytes(18'648 * 1024)), planned_tiny(2, 2, 1, 512, Bytes(6'834 * 1024)),
        planned_tiny(2, 3, 4, 256, Bytes(12'000 * 1024))}) {
    expect_certified_deeper(job);
  }
}

// A strategy simulated under a large budget may fit a smaller one with extra recomputing layers.
TEST(Pareto, CertifiesEachPointOfTheFront) {
  const Job job = planned_tiny(1, 3, 2, 64, Bytes(64 << 20));
  const Exhausted all = exhaust_extra_recompute(job);
  const Search s = search(job, {.leaders = 8});
  const Front front = pareto_front(job, s, {.leaders = 8, .devices = {1}});
  ASSERT_GT(front.points.size(), 2U);
  for (const FrontPoint& p : front.points)
    EXPECT_LE(p.leader.simulated, all.best_within(p.leader.hbm) * (1 + p.gap) * (1 + 1e-9))
        << describe(p.leader.strategy);
}

}  // namespace
}  // namespace hyperrun::testing

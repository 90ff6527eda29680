// The second round of a search, on several threads, and the bounds of the first.
#include "runtime/plan/forecaster.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <limits>
#include <string>
#include <thread>
#include <vector>

#include "runtime/plan/balance.h"
#include "runtime/plan/bounding.h"
#include "runtime/plan/layer_profile_cache.h"
#include "runtime/plan/lower_bound_profile.h"
#include "runtime/plan/order_bounds.h"
#include "runtime/plan/search.h"
#include "runtime/plan/simulated_candidate.h"
#include "runtime/spec/job_reader.h"
#include "tests/plan/worlds.h"

namespace hyperrun::testing {
namespace {

std::vector<Bounded> bounded(const Job& job) {
  return bound_all(job, spaces().front(), shapes_of(job, spaces().front()), [](std::int64_t) {}).lowest();
}

double all_wanted(const Strategy&) { return std::numeric_limits<double>::infinity(); }

TEST(Forecaster, GivesEachStrategyOnceAsIfForecastAlone) {
  const Job job = planned_llama(32, 8, 64);
  std::vector<Bounded> list = bounded(job);
  ASSERT_GT(list.size(), 2'000U);
  list.resize(2'000);
  Forecaster all(job, spaces().front()), alone(job, spaces().front());
  std::vector<int> times(list.size());
  all.each(list, all_wanted, [&](std::size_t i, Forecasts&& found) {
    ++times[i];
    const Strategy& s = list[i].strategy;
    EXPECT_GE(found.bound, list[i].bound);
    EXPECT_GE(found.bound_in_own_order, found.bound);
    const auto again = alone.forecast_of(s);
    EXPECT_EQ(found.plain.has_value(), again.has_value() && s.extra_recompute_layers == 0);
    if (again && found.plain) {
      EXPECT_EQ(found.plain->forecast.time, again->time) << describe(s);
      EXPECT_EQ(found.plain->forecast.memory, again->memory) << describe(s);
    }
  });
  EXPECT_EQ(std::ranges::count(times, 1), std::ssize(list));
}

TEST(Forecaster, SkipsStrategiesAboveTheCutoff) {
  const Job job = planned_llama(16, 8, 32);
  const std::vector<Bounded> list = bounded(job);
  const double cutoff = list[list.size() / 8].bound;
  std::atomic<double> known = std::numeric_limits<double>::infinity();
  const auto known_enough = [&](const Strategy&) { return known.load(); };
  std::size_t wanted = 0, others = 0;
  Forecaster(job, spaces().front()).each(list, known_enough, [&](std::size_t, Forecasts&& found) {
    if (found.plain || found.with_extra) ++(found.bound_in_own_order <= cutoff ? wanted : others);
    known = cutoff;
  });
  EXPECT_GT(wanted, list.size() / 16);
  EXPECT_LE(others, std::max(1U, std::thread::hardware_concurrency()))
      << "each thread has one before it has heard";
}

TEST(Forecaster, PropagatesExceptions) {
  const Job job = planned_llama(4, 4, 4);
  const std::vector<Bounded> list = bounded(job);
  Forecaster all(job, spaces().front());
  EXPECT_THROW(all.each(list, all_wanted, [](std::size_t, Forecasts&&) { throw 1; }), int);
}

// A thread must not depend on structures that another one has seen.
TEST(Forecaster, BoundsAreTheSameEachTime) {
  const Job job = planned_llama(16, 8, 32);
  const std::vector<Bounded> first = bounded(job), second = bounded(job);
  ASSERT_EQ(first.size(), second.size());
  for (std::size_t i = 0; i < first.size(); ++i)
    ASSERT_TRUE(first[i].bound == second[i].bound && first[i].strategy == second[i].strategy) << i;
}

// Bounds are added one by one and from several lists, in any order.
TEST(Bounds, KeepTheLowest) {
  const auto bounded_by = [](std::size_t ns) {
    const auto bound = static_cast<double>(ns);
    return Bounded{bound, {}, bound - 0.5};
  };
  constexpr std::size_t kMost = LowestBounds::kMost;
  LowestBounds all, more;
  for (std::size_t i = 0; i < kMost; ++i) all.add(bounded_by(2 * i));
  all.trim();
  EXPECT_EQ(all.cutoff(), std::numeric_limits<double>::infinity());
  EXPECT_EQ(all.least_dropped(), std::numeric_limits<double>::infinity());
  for (std::size_t i = 3 * kMost; i > 0; --i) more.add(bounded_by(2 * i - 1));
  all.add(std::move(more));
  all.trim();
  EXPECT_EQ(all.list().size(), kMost);
  EXPECT_EQ(all.cutoff(), kMost - 1.0);
  EXPECT_EQ(all.least_dropped(), kMost - 0.5);
}

// Strategies that need the pool are many, and must not displace the others.
TEST(Bounds, KeepOffloadedStrategiesSeparately) {
  Job job = planned_llama(8, 4, 16);
  job.supernode.hbm = Bytes(std::int64_t{2} << 30);
  job.supernode.pool = Bytes(std::int64_t{1} << 40);
  const Space& space = spaces().front();
  const Bounds all = bound_all(job, space, shapes_of(job, space), [](std::int64_t) {});
  ASSERT_GT(all.kept.list().size(), 100U);
  ASSERT_GT(all.kept_offloaded.list().size(), 100U);
  EXPECT_EQ(all.lowest().size(), all.kept.list().size() + all.kept_offloaded.list().size());
  Forecaster forecaster(job, space);
  std::int64_t fit = 0;
  for (const Bounded& b : all.kept.list())
    if (const auto f = forecaster.forecast_of(b.strategy)) fit += f->memory <= job.supernode.hbm.value;
  EXPECT_GT(fit, 0);
  for (const Bounded& b : all.kept_offloaded.list()) {
    const auto f = forecaster.forecast_of(b.strategy);
    EXPECT_TRUE(!f || f->memory > job.supernode.hbm.value) << describe(b.strategy);
  }
}

// Larger micro-batches may have a lower memory bound, so each number of samples is judged by itself.
TEST(Bounds, JudgeEachNumberOfSamplesSeparately) {
  const Space& space = spaces().front();
  Job job = planned_llama(4, 4, 16);
  job.supernode.pool = Bytes(0);
  for (const std::int64_t hbm : {400'000'000, 800'000'000, 1'200'000'000}) {
    job.supernode.hbm = Bytes(hbm);
    LayerProfileCache cache(job);
    std::int64_t do_not_fit = 0;
    const auto look_at = [&](const Strategy& s, const StepProfile* profile) {
      const Forecast f =
          closed_form_bound(s, job.model, micro_batches(s, job.training.batch), {profile, nullptr});
      do_not_fit += f.least_memory > hbm || f.least_fixed > hbm ? 1 : 0;
    };
    each_strategy(job, space, [&](const Strategy& s) {
      const StepProfile* profile = cache.bound_profile(s);
      look_at(s, profile);
      if (const auto uneven = balanced(s, job.model, *profile)) look_at(*uneven, profile);
    });
    const Bounds all = bound_all(job, space, shapes_of(job, space), [](std::int64_t) {});
    EXPECT_EQ(all.do_not_fit, do_not_fit);
    EXPECT_GT(all.do_not_fit, 0);
  }
}

// Heads split by both axes are exchanged in the same way, whichever axis comes first in the mesh.
TEST(Bounds, HoldForEitherOrderOfTensorAndContextAxes) {
  Job job = planned_llama(4, 8, 4);
  job.training.batch = 5;
  job.model.hidden = 320, job.model.heads = job.model.kv_heads = 8, job.model.head_dim = 40;
  job.model.sequence = job.model.positions = 24;
  LayerProfileCache cache(job);
  OrderBounds bounds(job, cache);
  Strategy first;
  first[PlanAxis::kTensor] = first[PlanAxis::kContext] = 2;
  for (const PlanRecompute recompute : {PlanRecompute::kNone, PlanRecompute::kFull}) {
    first.recompute = recompute;
    const double bound = bounds.of(first).in_any_order;
    ASSERT_GT(bound, 0);
    for (const Strategy& s : orders_of(first))
      EXPECT_LE(bound, simulate_strategy(job, s, {}).simulated) << describe(s);
  }
}

void expect_bounds_hold(Job job, Strategy s) {
  job.supernode.hbm = Bytes(std::int64_t{1} << 50);
  LayerProfileCache cache(job);
  OrderBounds bounds(job, cache);
  const std::int32_t m = micro_batches(s, job.training.batch);
  for (s.recompute = PlanRecompute::kNone;; s.recompute = *stronger_recompute(s.recompute)) {
    const StepProfile& profile = *cache.profile(s);
    const Forecast f = closed_form(s, job.model, m, {&profile, nullptr}, cache.message_time(s, profile));
    const double simulated = simulate_strategy(job, s, f).simulated;
    EXPECT_LE(f.bound, simulated) << describe(s) << " of " << m;
    EXPECT_LE(bounds.of(s).in_any_order, simulated) << describe(s) << " of " << m;
    if (!stronger_recompute(s.recompute)) return;
  }
}

// With few tokens gradients are most of a pass, and the first micro-batch adds to no sum.
TEST(Bounds, HoldForTheFirstMicroBatchWithoutAccumulation) {
  Job llama = planned_llama(2, 8, 8), mixture = planned_mixture(2, 8, 4);
  for (Job* job : {&llama, &mixture}) job->model.sequence = job->model.positions = 64;
  mixture.model.ffn = 64, mixture.model.vocab = 512;
  Strategy s;
  s[PlanAxis::kPipeline] = 2;
  for (const std::int32_t batch : {1, 2, 4}) {
    llama.training.batch = 4 * batch, mixture.training.batch = batch;
    s.samples = 4;
    expect_bounds_hold(llama, s);
    s.samples = 1;
    for (const std::int32_t dense : {0, 2, 4}) {
      mixture.model.experts.dense_layers = dense;
      expect_bounds_hold(mixture, s);
    }
  }
}

// The first chunk of a device has dense layers, the second one experts and more work before its first pass.
TEST(Bounds, HoldForUnequalChunks) {
  Job job = planned_mixture(2, 8, 8);
  job.model.experts.dense_layers = 2, job.model.vocab = 512;
  Strategy s;
  s[PlanAxis::kPipeline] = 2;
  s.schedule = PlanSchedule::kInterleaved, s.chunks = 2;
  for (const std::int32_t batch : {2, 4, 8}) {
    job.training.batch = batch;
    job.model.ffn = 5632, job.model.experts.ffn = 1408;
    job.model.sequence = job.model.positions = 256;
    expect_bounds_hold(job, s);
    job.model.ffn = 512, job.model.experts.ffn = 5632;
    job.model.sequence = job.model.positions = 2048;
    expect_bounds_hold(job, s);
  }
}

// Rematerialisation on another stream ends before the first product of the backward pass.
TEST(Bounds, HoldIfRecomputationRunsAhead) {
  Job job = planned_llama(2, 8, 16);
  job.model.heads = 8, job.model.kv_heads = 4, job.model.head_dim = 32;
  job.model.hidden = 128, job.model.vocab = 4096;
  job.model.sequence = job.model.positions = 1024;
  Strategy s;
  s[PlanAxis::kPipeline] = 2, s.schedule = PlanSchedule::kGpipe;
  s.recompute = PlanRecompute::kSelective, s.samples = 8;
  for (const std::int32_t times : {2, 4, 8}) {
    job.model.ffn = times * job.model.hidden;
    expect_bounds_hold(job, s);
  }
}

// Collectives are the limit, and the first ones gather weights while others are still being copied.
TEST(Bounds, HoldIfWeightsAreGatheredBeforeTheFirstPass) {
  Job job = planned_llama(4, 6, 16);
  job.model.heads = job.model.kv_heads = 4, job.model.head_dim = 128;
  job.model.hidden = 512, job.model.ffn = 1536, job.model.vocab = 512;
  job.model.sequence = job.model.positions = 256;
  LayerProfileCache cache(job);
  Strategy s;
  s[PlanAxis::kData] = 4;
  for (s.zero = 0; s.zero <= 3; ++s.zero) {
    const StepProfile& profile = *cache.profile(s);
    const Forecast f = closed_form(s, job.model, micro_batches(s, job.training.batch), {&profile, nullptr},
                                   cache.message_time(s, profile));
    const double simulated = simulate_strategy(job, s, f).simulated;
    EXPECT_LE(f.bound, simulated) << describe(s);
    EXPECT_GE(f.bound, 0.7 * simulated) << describe(s);
  }
}

// Communication behind a gradient waits for its scatter, and products wait for that communication. Weights
// are gathered before all passes.
TEST(Bounds, IncludeWaitsForScatterAndGather) {
  Job job = planned_llama(16, 8, 16);
  for (Level& level : job.supernode.machine->levels) level.bandwidth.value /= 4;
  job.supernode.hbm = Bytes(std::int64_t{1} << 50);
  Strategy s;
  s[PlanAxis::kPipeline] = s[PlanAxis::kTensor] = 2, s[PlanAxis::kData] = 4;
  const auto share = [&](std::int32_t zero, std::int32_t micro_batches, std::int32_t chunks) {
    s.zero = zero, s.samples = job.training.batch / micro_batches / 4, s.chunks = chunks;
    s.schedule = chunks > 1 ? PlanSchedule::kInterleaved : PlanSchedule::k1f1b;
    LayerProfileCache cache(job);
    const double share = OrderBounds(job, cache).of(s).in_any_order / simulate_strategy(job, s, {}).simulated;
    EXPECT_LE(share, 1) << describe(s);
    return share;
  };
  job.training.batch = 64;
  EXPECT_GT(share(2, 8, 1), 0.8) << "0.69 without what waits for gradients";
  EXPECT_GT(share(2, 8, 4), 0.72) << "a stage has one layer: 0.60 without its end";
  s.recompute = PlanRecompute::kSelective;
  EXPECT_GT(share(2, 8, 1), 0.8);
  s.recompute = PlanRecompute::kNone;
  job.training.batch = 32, job.model.sequence = job.model.positions = 512;
  EXPECT_GT(share(1, 2, 4), 0.535) << "0.518 where passes do not wait for weights";
}

Job on(const char* profile, int devices, int batch, const std::string& model) {
  return parse_job("supernode { devices: " + std::to_string(devices) + " profile: \"" + profile +
                       "\" }\nmodel { " + model +
                       " }\ndata { corpus: \"none.txt\" }\ntraining { steps: 1 batch: " +
                       std::to_string(batch) + " lr: 1e-4 }",
                   "planned", JobUse::kToBePlanned)
      .job;
}

void expect_bounded(const Job& job, const Strategy& s) {
  LayerProfileCache cache(job);
  const SimulatedCandidate leader = simulate_strategy(job, s, {});
  ASSERT_GT(leader.simulated, 0) << describe(s) << ": " << leader.why_not;
  const OrderBounds::Bound bound = OrderBounds(job, cache).of(s);
  const double in_own_order = OrderBounds(job, cache).in_own_order(s);
  EXPECT_LE(in_own_order, leader.simulated) << describe(s);
  EXPECT_LE(bound.in_any_order, in_own_order) << describe(s);
}

// No stage waits for weight gradients made after the result is handed on. On a GPU these are most of a pass
// of small layers.
TEST(Bounds, HoldIfAPassEndsAfterItsHandoff) {
  for (const std::int32_t stages : {2, 4})
    for (const std::int32_t micro_batches : {1, 2, 6})
      for (const PlanSchedule schedule : {PlanSchedule::kGpipe, PlanSchedule::k1f1b}) {
        const Job job = on("a100", stages, 6,
                           "layers: 4 hidden: 64 heads: 4 kv_heads: 2 ffn: 64 vocab: 300 sequence: 2048");
        Strategy s;
        s[PlanAxis::kPipeline] = stages, s.samples = 6 / micro_batches, s.schedule = schedule;
        expect_bounded(job, s);
      }
}

// Products of the next micro-batch begin while the loss of one is computed.
TEST(Bounds, HoldIfForwardPassesOverlapWithTheHead) {
  const Job job =
      on("a100", 2, 8,
         "layers: 3 hidden: 128 heads: 4 kv_heads: 2 head_dim: 32 ffn: 256 vocab: 32000 sequence: 2048 "
         "experts { count: 16 choices: 1 ffn: 64 shared: 1 }");
  Strategy s;
  s[PlanAxis::kPipeline] = 2, s.schedule = PlanSchedule::kGpipe;
  for (const std::int32_t samples : {1, 2}) s.samples = samples, expect_bounded(job, s);
}

// Experts repeated over tensor axes are exchanged along these as well. In a mesh each device has a link to
// every other.
TEST(Bounds, HoldIfLargerGroupsHaveMoreLinks) {
  const Job job =
      on("atlas_a2", 4, 4,
         "layers: 2 hidden: 832 heads: 16 kv_heads: 2 head_dim: 16 ffn: 3328 vocab: 300 sequence: 256 "
         "experts { count: 16 choices: 1 ffn: 1664 capacity { factor: 2.0 } }");
  for (const std::int32_t zero : {0, 1, 2, 3})
    for (const PlanAxis axis : {PlanAxis::kData, PlanAxis::kContext, PlanAxis::kExpert}) {
      Strategy s;
      s[PlanAxis::kTensor] = s[axis] = 2, s.zero = zero;
      s.samples = axis == PlanAxis::kContext ? 4 : 2;
      expect_bounded(job, s);
    }
}

// Gradients of weights without a dividing dimension are all-reduced once a step, which between hosts is
// cheaper than a scatter.
TEST(Bounds, HoldIfZeroSplitsNothing) {
  struct {
    const char* profile;
    int devices, hidden;
  } const machines[] = {
      {"a100", 24, 1024}, {"h100", 48, 4096}, {"atlas_a2", 48, 1024}, {"matrix384", 48, 1024}};
  for (const auto& [profile, devices, hidden] : machines) {
    const std::string model = "layers: 2 hidden: " + std::to_string(hidden) +
                              " heads: 16 kv_heads: 8 ffn: " + std::to_string(4 * hidden) +
                              " vocab: 32000 sequence: 1024";
    Job job = on(profile, devices, 2 * devices, model);
    job.training.precision = kBfloat16;
    for (const std::int32_t zero : {0, 1, 2, 3})
      for (const PlanAxis axis : {PlanAxis::kContext, PlanAxis::kTensor, PlanAxis::kRing})
        for (const std::int32_t along : {1, 2}) {
          Strategy s;
          s[PlanAxis::kData] = devices / along, s[axis] = along, s.zero = zero;
          for (const std::int32_t samples : {1, 2}) s.samples = samples, expect_bounded(job, s);
        }
  }
}

// Products of deferred weight gradients delay passes, as streams are in order. They hide only the end of a
// pass.
TEST(Bounds, IncludeDeferredProductsBetweenPasses) {
  Job job = planned_llama(8, 8, 32);
  job.supernode.hbm = Bytes(std::int64_t{1} << 50);
  Strategy s;
  s.schedule = PlanSchedule::kZeroBubble;
  for (const std::int32_t stages : {2, 4})
    for (const std::int32_t micro_batches : {8, 32}) {
      s[PlanAxis::kPipeline] = stages, s[PlanAxis::kTensor] = 8 / stages, s.samples = 32 / micro_batches;
      LayerProfileCache cache(job);
      const double simulated = simulate_strategy(job, s, {}).simulated;
      const double share = OrderBounds(job, cache).of(s).in_any_order / simulated;
      EXPECT_LE(share, 1) << describe(s);
      EXPECT_GT(share, 0.94) << describe(s) << ": 0.70 to 0.81 where they hide all that is waited for";
      EXPECT_NEAR(Forecaster(job, spaces().front()).forecast_of(s)->time / simulated, 1, 0.02) << describe(s);
    }
}

// One more recomputing layer may shorten a step, because it need not wait for the layer behind. The bound of
// a strategy covers all numbers of such layers.
TEST(Bounds, HoldForAnyNumberOfExtraRecomputingLayers) {
  std::size_t strategies = 0, fallen = 0;
  for (Job job : {planned_llama(4, 6, 4), planned_mixture(4, 6, 4)}) {
    LayerProfileCache cache(job);
    OrderBounds bounds(job, cache);
    job.supernode.hbm = Bytes(std::int64_t{1} << 50);
    for (const Bounded& first : bounded(job)) {
      Strategy s = first.strategy;
      const OrderBounds::Bound none = bounds.of(s);
      EXPECT_LE(first.bound_with_extra, first.bound);
      EXPECT_LE(none.bound_with_extra, none.in_any_order);
      if (!may_recompute_extra(s, job.model.layers)) continue;
      Strategy more = s;
      more.recompute = *stronger_recompute(s.recompute);
      const StepProfiles profile{cache.bound_profile(s), cache.bound_profile(more)};
      const std::int32_t m = micro_batches(s, job.training.batch);
      // Its own bound, and the bound for more, by number of extra recomputing layers.
      std::vector<double> bound, in_any_order, share_of, bound_with_extra;
      const double share = extra_recompute_share(profile, s, job.model.layers);
      for (s.extra_recompute_layers = 0; s.extra_recompute_layers < most_layers(s, job.model.layers);
           ++s.extra_recompute_layers) {
        ++strategies;
        const OrderBounds::Bound of = bounds.of(s);
        bound.push_back(closed_form_bound(s, job.model, m, profile).bound);
        share_of.push_back(share * bound.back());
        in_any_order.push_back(of.in_any_order), bound_with_extra.push_back(of.bound_with_extra);
        for (std::size_t d = 0; d < bound.size(); ++d) {
          EXPECT_LE(share_of[d], bound.back() * (1 + 1e-12)) << describe(s) << " beside " << d;
          EXPECT_LE(bound_with_extra[d], in_any_order.back() * (1 + 1e-12)) << describe(s) << " beside " << d;
        }
      }
      EXPECT_EQ(first.bound_with_extra, share_of.front());
      const bool falls = std::ranges::min(bound) < bound.front();
      fallen += falls ? 1 : 0;
    }
  }
  EXPECT_GT(strategies, 1'000U);
  EXPECT_GT(fallen, 10U) << "nothing is shown";
}

// Savings arise where layers with different recomputation meet. A single layer has no such neighbour.
TEST(Bounds, LoseNothingForASingleLayer) {
  const Job job = planned_mixture(8, 12, 8);
  LayerProfileCache cache(job);
  Strategy s, more;
  s[PlanAxis::kTensor] = 2;
  more = s, more.recompute = PlanRecompute::kSelective;
  const StepProfiles profile{cache.bound_profile(s), cache.bound_profile(more)};
  const auto share = [&](std::int32_t stages, std::int32_t chunks, std::int32_t first_stage_shortfall) {
    s[PlanAxis::kPipeline] = stages, s.chunks = chunks, s.first_stage_shortfall = first_stage_shortfall;
    return extra_recompute_share(profile, s, 12);
  };
  ASSERT_LT(boundary_savings(profile).backward, 0) << "nothing is shown";
  EXPECT_GT(share(12, 1, 0), share(6, 1, 0)) << "of layers that are alone";
  EXPECT_EQ(share(7, 1, 0), share(6, 1, 0)) << "some are two";
  EXPECT_GT(share(4, 1, 0), share(6, 1, 0)) << "more than two";
  EXPECT_EQ(share(4, 1, 1), share(4, 1, 0)) << "13 shares: 3, 3, 3 and 3 layers";
  EXPECT_GT(share(2, 6, 0), share(2, 3, 0)) << "of the six or three stages of a device";
}

}  // namespace
}  // namespace hyperrun::testing

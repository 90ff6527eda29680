// The closed form compared with the simulator, for strategies of every kind.
#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <set>
#include <string>
#include <vector>

#include "runtime/base/error.h"
#include "runtime/compile/compile.h"
#include "runtime/plan/layer_profile_cache.h"
#include "runtime/plan/search.h"
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
  PlanExperts experts = PlanExperts::kRepeated;
  std::int32_t extra_recompute_layers = 0;
  PlanAxis outermost_axis = PlanAxis::kPipeline;
};

Strategy strategy_of(const Case& c) {
  Strategy s;
  s.sizes = c.sizes;
  s.zero = c.zero, s.samples = c.samples, s.chunks = c.chunks;
  s.schedule = c.schedule, s.recompute = c.recompute, s.experts = c.experts,
  s.extra_recompute_layers = c.extra_recompute_layers;
  std::ranges::rotate(s.order.begin(), std::ranges::find(s.order, c.outermost_axis),
                      std::next(std::ranges::find(s.order, c.outermost_axis)));
  return s;
}

class Forecasts : public ::testing::TestWithParam<Case> {};

// The formula neglects the start of a layer of another kind than the one before, and gradient collectives
// that delay those of the last backward pass.
constexpr double kTime = 0.07;
constexpr double kMemory = 0.25;
constexpr double kMemoryOfEnds = 0.1;  // tolerance if embedding and head are most of the memory

// `find`: finds the profile of one strategy.
template <class Find>
StepProfiles step_profiles(Strategy s, Find find) {
  StepProfiles layers{find(s), nullptr};
  if (s.extra_recompute_layers == 0) return layers;
  s.recompute = *stronger_recompute(s.recompute);
  layers.extra = find(s);
  return layers;
}

TEST_P(Forecasts, AreNearTheSimulatorAndBoundsAreBelow) {
  const Strategy s = strategy_of(GetParam());
  const bool mixture = s[PlanAxis::kExpert] > 1 || s.experts != PlanExperts::kRepeated;
  const Job job = mixture ? planned_mixture(8, 8, 32) : planned_llama(8, 8, 32);
  LayerProfileCache cache(job);
  const StepProfiles profile = step_profiles(s, [&](const Strategy& t) { return cache.profile(t); });
  ASSERT_NE(profile.base, nullptr) << cache.why_not(s);
  const Forecast f = closed_form(s, job.model, micro_batches(s, job.training.batch), profile,
                                 cache.message_time(s, *profile.base));
  const SimulatedCandidate leader = simulate_strategy(job, s, f);
  ASSERT_GT(leader.simulated, 0) << leader.why_not;
  EXPECT_NEAR(f.time / leader.simulated, 1, kTime);
  EXPECT_LE(f.bound, leader.simulated);
  EXPECT_GE(f.bound, 0.7 * leader.simulated) << "a bound that bounds little";
  const auto hbm = static_cast<double>(leader.hbm.value);
  EXPECT_NEAR(static_cast<double>(f.memory) / hbm, 1, kMemory);
  EXPECT_LE(static_cast<double>(f.least_memory), hbm);

  const StepProfiles without = step_profiles(s, [&](const Strategy& t) { return cache.bound_profile(t); });
  ASSERT_NE(without.base, nullptr);
  const Forecast least = closed_form_bound(s, job.model, micro_batches(s, job.training.batch), without);
  EXPECT_LE(least.bound, f.bound * (1 + 1e-9)) << "knows less, and says more";
  EXPECT_LE(least.least_memory, leader.hbm.value);
}

struct Beside {
  Forecast forecast, least;
  SimulatedCandidate leader;
};

Beside beside_the_simulator(const Job& job, const Strategy& s) {
  LayerProfileCache cache(job);
  const std::int32_t m = micro_batches(s, job.training.batch);
  const StepProfiles profile = step_profiles(s, [&](const Strategy& t) { return cache.profile(t); });
  Beside b;
  b.forecast = closed_form(s, job.model, m, profile, cache.message_time(s, *profile.base));
  b.least = closed_form_bound(s, job.model, m,
                              step_profiles(s, [&](const Strategy& t) { return cache.bound_profile(t); }));
  b.leader = simulate_strategy(job, s, b.forecast);
  return b;
}

// Three micro-batches in rounds of two. The last round is as long as the first, and its logits wait behind
// the last stage until the backward pass before has returned.
TEST(Interleaved, IncompleteRoundTakesAsLongAndKeepsTheHeadsActivations) {
  Job job = planned_llama(8, 8, 24);
  job.model.vocab = 128000;
  Strategy s = strategy_of({"", {2, 4, 1, 1, 1, 1, 1}, 0, 2, 4, PlanSchedule::kInterleaved});
  s.recompute = PlanRecompute::kFull;
  const Beside b = beside_the_simulator(job, s);
  ASSERT_GT(b.leader.simulated, 0) << b.leader.why_not;
  EXPECT_NEAR(b.forecast.time / b.leader.simulated, 1, kTime);
  const auto hbm = static_cast<double>(b.leader.hbm.value);
  EXPECT_NEAR(static_cast<double>(b.forecast.memory) / hbm, 1, kMemoryOfEnds);
  EXPECT_LE(b.least.least_memory, b.leader.hbm.value);
  EXPECT_LE(b.least.bound, b.leader.simulated);
}

// The first chunk of a device has the most micro-batches in flight. If its layers keep less, as dense or
// recomputing ones do, the device needs less.
TEST(Interleaved, FirstChunkKeepsMost) {
  const auto test = [](const Job& job, Strategy s) {
    const Beside b = beside_the_simulator(job, s);
    ASSERT_GT(b.leader.simulated, 0) << b.leader.why_not;
    const auto hbm = static_cast<double>(b.leader.hbm.value);
    EXPECT_NEAR(static_cast<double>(b.forecast.memory) / hbm, 1, kMemoryOfEnds) << describe(s);
    EXPECT_LE(b.least.least_memory, b.leader.hbm.value) << describe(s);
  };
  Strategy s = strategy_of({"", {8, 1, 1, 1, 1, 1, 1}, 0, 1, 4, PlanSchedule::kInterleaved});
  Job llama = planned_llama(8, 32, 32);
  llama.model.vocab = 512;
  llama.model.sequence = llama.model.positions = 8192;
  s.recompute = PlanRecompute::kSelective;
  for (s.extra_recompute_layers = 0; s.extra_recompute_layers < 4; ++s.extra_recompute_layers) test(llama, s);
  s.extra_recompute_layers = 0, s.recompute = PlanRecompute::kNone;
  Job mixture = planned_mixture(8, 32, 32);
  mixture.model.experts.dense_layers = 8;
  mixture.model.experts.ffn = mixture.model.ffn;
  test(mixture, s);
}

// With as many micro-batches as stages the last forward pass ends before the first chunk has gradients.
TEST(Interleaved, FewMicroBatchesEndBeforeGradientsExist) {
  for (const std::int32_t batch : {4, 8, 16}) {
    Strategy s = strategy_of({"", {4, 1, 1, 1, 1, 1, 1}, 0, 1, 2, PlanSchedule::kInterleaved});
    s.recompute = PlanRecompute::kSelective;
    Job job = planned_llama(4, 8, batch);
    job.model.sequence = job.model.positions = 256;
    const Beside b = beside_the_simulator(job, s);
    ASSERT_GT(b.leader.simulated, 0) << b.leader.why_not;
    EXPECT_LE(b.least.least_memory, b.leader.hbm.value) << batch;
  }
}

// Deferred weight gradients hide their reduce-scatter, or wait for the gather of activations behind it on the
// same stream.
TEST(ZeroBubble, ForecastsTheScatterOfDeferredGradients) {
  const Job job = planned_llama(8, 8, 32);
  for (const std::int32_t zero : {2, 3})
    for (const PlanAxis other : {PlanAxis::kTensor, PlanAxis::kData}) {
      Strategy s;
      s[PlanAxis::kPipeline] = s[PlanAxis::kData] = 2;
      s[other] *= 2;
      s.zero = zero, s.schedule = PlanSchedule::kZeroBubble;
      const Beside b = beside_the_simulator(job, s);
      ASSERT_GT(b.leader.simulated, 0) << b.leader.why_not;
      EXPECT_NEAR(b.forecast.time / b.leader.simulated, 1, kTime) << describe(s);
      EXPECT_LE(b.forecast.bound, b.leader.simulated) << describe(s);
      EXPECT_LE(b.least.bound, b.leader.simulated) << describe(s);
      // Tolerance: the first micro-batch adds to no gradient sum, which saves more if ZeRO splits the sum.
      EXPECT_LE(b.least.bound, b.forecast.bound * 1.002) << "knows less, and says more: " << describe(s);
      EXPECT_GE(b.forecast.bound, 0.8 * b.leader.simulated) << describe(s);
    }
}

// The last stage uses the embedding for the next tokens, so both ends hold it and its gradient sum.
TEST(Pipeline, BothEndsHoldASharedEmbedding) {
  Job job = planned_llama(8, 8, 32);
  job.model.vocab = 256000;
  job.model.mtp.layers = 1;
  LayerProfileCache cache(job);
  const StepProfile& whole = *cache.profile(strategy_of({"", {4, 2, 1, 1, 1, 1, 1}}));
  const std::int64_t embedding = std::int64_t{job.model.vocab} * job.model.hidden;
  EXPECT_EQ(whole.first_too.gradients, 4 * embedding) << "float32";
  EXPECT_EQ(whole.last_too.copies, 2 * embedding) << "bfloat16";
  for (const std::int32_t zero : {0, 1, 3}) {
    Strategy s = strategy_of({"", {4, 2, 1, 1, 1, 1, 1}, zero});
    s.recompute = PlanRecompute::kFull;
    const Beside b = beside_the_simulator(job, s);
    ASSERT_GT(b.leader.simulated, 0) << b.leader.why_not;
    const auto hbm = static_cast<double>(b.leader.hbm.value);
    EXPECT_NEAR(static_cast<double>(b.forecast.memory) / hbm, 1, kMemoryOfEnds) << "zero " << zero;
    EXPECT_LE(b.least.least_memory, b.leader.hbm.value) << "zero " << zero;
  }
}

// Stages with fewer layers belong to the pipeline; the small model of a profile has none.
TEST(StepProfile, IgnoresUnevenStages) {
  const Job job = planned_llama(8, 18, 32);
  Strategy s = strategy_of({"", {1, 8, 1, 1, 1, 1, 1}, 1, 1, 9});
  s.recompute = PlanRecompute::kFull;
  s.first_stage_shortfall = -1, s.last_stage_shortfall = 2;
  const Job probe = probe_job(job, s);
  ASSERT_EQ(probe.training.recompute.size(), 1U);
  EXPECT_EQ(probe.training.recompute.front().first_layer, 0);
  EXPECT_EQ(probe.training.recompute.front().last_layer, probe.model.layers - 1);
}

// 2,048 dies in supernodes of 768: the second of four stages straddles two supernodes; none of eight does.
TEST(StepProfile, KnowsGroupsThatStraddleTwoSupernodes) {
  const Job job = planned_llama(2048, 8, 2048);
  LayerProfileCache cache(job);
  const auto exchange = [&](std::int32_t stages) {
    Strategy s;
    s.sizes = {stages, 256 / stages, 1, 1, 1, 1, 8};
    s.zero = 1;
    return cache.profile(s)->kinds[0].exchange;
  };
  EXPECT_GT(exchange(4), 4 * exchange(8)) << "7.8 times the bandwidth lies within a supernode";
}

// Stages split no tensor, so devices of a tensor lie as before if a slower pipeline axis is added.
TEST(StepProfile, PassesDoNotDependOnTheOrderOfStages) {
  const Job job = planned_llama(2048, 8, 2048);
  LayerProfileCache cache(job);
  Strategy inside, outside;
  inside.sizes = outside.sizes = {8, 32, 1, 1, 1, 1, 8};
  inside.zero = outside.zero = 1;
  std::swap(inside.order[0], inside.order[1]);
  EXPECT_EQ(cache.profile(inside)->kinds[0].forward, cache.profile(outside)->kinds[0].forward);
  EXPECT_GT(cache.profile(inside)->kinds[0].exchange, 4 * cache.profile(outside)->kinds[0].exchange)
      << "its devices are eight times as far apart";
}

// The cheapest exchange depends on both sizes. A cache that has seen other sizes must return the same
// profile.
TEST(StepProfile, TwoDimensionalTensorsDoNotDependOnEarlierSizes) {
  Job job = planned_llama(16, 8, 16);
  job.model.heads = job.model.kv_heads = 8, job.model.hidden = 512, job.model.head_dim = 64;
  job.model.sequence = job.model.positions = 1024;
  job.model.latent = {.q_rank = 128, .kv_rank = 64, .nope_dim = 64, .rope_dim = 32, .value_dim = 64};
  LayerProfileCache cache(job);
  for (const std::int32_t x : {2, 4, 8})
    for (const std::int32_t y : {2, 4, 8}) {
      if (x * y > 16) continue;
      Strategy s;
      s[PlanAxis::kTensor] = x, s[PlanAxis::kTensorY] = y;
      LayerProfileCache fresh(job);
      const StepProfile *known = cache.bound_profile(s), *alone = fresh.bound_profile(s);
      ASSERT_EQ(known != nullptr, alone != nullptr) << describe(s);
      if (alone == nullptr) continue;
      EXPECT_EQ(*known, *alone) << describe(s);
    }
}

// With fewer key-value heads than devices that split query heads, keys and values are exchanged in another
// way, depending on the number of devices of each axis.
TEST(StepProfile, GatheredHeadsDoNotDependOnEarlierSizes) {
  Job job = planned_llama(16, 4, 16);
  job.model.hidden = 1024, job.model.heads = 8, job.model.head_dim = 128;
  for (const std::int32_t kv_heads : {2, 4}) {
    job.model.kv_heads = kv_heads;
    LayerProfileCache cache(job);
    const auto expect_the_same = [&](std::int32_t context, std::int32_t tensor, std::int32_t ring) {
      Strategy s;
      s[PlanAxis::kContext] = context, s[PlanAxis::kTensor] = tensor, s[PlanAxis::kRing] = ring;
      if (kv_heads % tensor != 0) return;
      LayerProfileCache fresh(job);
      EXPECT_EQ(*cache.bound_profile(s), *fresh.bound_profile(s)) << describe(s) << " of " << kv_heads;
    };
    for (const std::int32_t ring : {1, 2})
      for (const std::int32_t context : {8, 4, 2})
        for (const std::int32_t tensor : {1, 2, 4})
          if (context * tensor <= 8) expect_the_same(context, tensor, ring);
  }
}

// A vocabulary that no axis divides is padded, differently for each size of the axes that split it.
TEST(StepProfile, PaddedVocabulariesDoNotDependOnEarlierSizes) {
  Job job = planned_llama(8, 4, 64);
  job.model.vocab = 32003;
  LayerProfileCache cache(job);
  for (const std::int32_t tensor : {2, 1, 4})
    for (const std::int32_t zero : {0, 1, 3}) {
      Strategy s;
      s[PlanAxis::kData] = 8 / tensor, s[PlanAxis::kTensor] = tensor;
      s.zero = zero;
      LayerProfileCache fresh(job);
      const StepProfile *known = cache.profile(s), *alone = fresh.profile(s);
      ASSERT_TRUE(known != nullptr && alone != nullptr) << describe(s);
      EXPECT_EQ(*known, *alone) << describe(s);
    }
}

// Micro-batches of other sizes: parts that do not depend on them are not computed again.
TEST(StepProfile, MicroBatchesDoNotDependOnEarlierSizes) {
  for (const Job& job : {planned_llama(16, 4, 64), planned_mixture(16, 4, 64)})
    for (const std::int32_t experts : {1, 2}) {
      if (experts > 1 && job.model.experts.count == 0) continue;
      LayerProfileCache cache(job);
      for (const std::int32_t tensor : {2, 4})
        for (const std::int32_t samples : {1, 4, 2}) {
          Strategy s;
          s[PlanAxis::kData] = 2, s[PlanAxis::kTensor] = tensor, s[PlanAxis::kExpert] = experts;
          s.zero = 1, s.samples = samples;
          LayerProfileCache fresh(job);
          const StepProfile *known = cache.profile(s), *alone = fresh.profile(s);
          ASSERT_TRUE(known != nullptr && alone != nullptr) << describe(s);
          EXPECT_EQ(*known, *alone) << describe(s);
        }
    }
}

// Just below a multiple the nearest double of a quotient is the next whole number.
TEST(StepProfile, DividesBytesLikeIntegers) {
  constexpr std::int64_t kMost = std::int64_t{1} << 52;
  for (const std::int32_t n : {1, 2, 3, 7, 48, 384, 12'345, 16'384, 999'983})
    for (std::int64_t multiple = kMost / n; multiple > 0; multiple /= 3)
      for (const std::int64_t more : {-1, 0, 1}) {
        const std::int64_t bytes = std::min(multiple * n + more, kMost - 1);
        EXPECT_EQ(part_of(bytes, n), bytes / n) << bytes << " of " << n;
      }
}

// A text of all operators in order, with the bytes of their results on a device, or the compiler's refusal.
// Expert counts are left out, as their small size depends on the devices exchanged with.
std::string sharded(const Job& job) {
  try {
    const Graph graph = sharded_training(job);
    const Mesh mesh{job.parallel.mesh};
    std::string text;
    for (const Node& n : graph.nodes) {
      text += std::to_string(n.op.index());
      for (const TensorId t : n.outputs)
        if (graph[t].vectors == 0)
          text += " " + std::to_string(local_elements(graph, t, graph.layouts[t.index()], mesh));
      text += "\n";
    }
    return text;
  } catch (const Error&) {
    return "refused";
  }
}

// Other axis orders share the graph of the canonical one.
TEST(StepProfile, CanonicalOrderHasTheGraphOfEachAxisOrder) {
  Job dense = planned_llama(16, 4, 32);
  dense.model.kv_heads = 8;
  const Job mixture = planned_mixture(16, 4, 32);
  const auto expect_alike = [](const Job& base, const Strategy& s) {
    std::set<std::string> of_orders;
    for (const Strategy& order : orders_of(s)) {
      const std::string is = sharded(probe_job(base, order));
      EXPECT_EQ(is, sharded(probe_job(base, as_sharded(order)))) << describe(order);
      of_orders.insert(is);
    }
    return of_orders.size();
  };
  Strategy s;
  s.zero = 1;
  s.sizes = {1, 2, 1, 2, 2, 1, 2};
  EXPECT_EQ(expect_alike(dense, s), 1U);
  Job learned = dense;  // with learned positions, which sequence axes split
  learned.model.name = "gpt2", learned.model.kv_heads = learned.model.heads;
  s.sizes = {1, 1, 1, 2, 4, 1, 2}, s.zero = 2;
  EXPECT_GT(expect_alike(learned, s), 1U) << "the ring's place matters";
  s.zero = 1;
  s.sizes = {1, 2, 1, 1, 2, 2, 2};
  EXPECT_GT(expect_alike(dense, s), 1U) << "of exchanges that move the same the first is taken";
  s.sizes = {1, 2, 2, 1, 2, 1, 2};
  for (const PlanExperts experts : {PlanExperts::kRepeated, PlanExperts::kWidth}) {
    s.experts = experts;
    EXPECT_EQ(expect_alike(mixture, s), 1U) << name(experts);
  }
  s.experts = PlanExperts::kSpread;
  EXPECT_GT(expect_alike(mixture, s), 1U) << "not all can be exchanged";
}

// A fused kernel takes the time of all its instructions, whichever sizes were computed before.
TEST(StepProfile, TimesFusedKernelsAsAWhole) {
  Job job = planned_llama(8, 8, 16);
  job.supernode.machine->fused = true;
  job.supernode.hbm = Bytes(std::int64_t{1} << 50);
  LayerProfileCache cache(job);
  for (const std::int32_t tensor : {1, 2, 8}) {
    Strategy s;
    s[PlanAxis::kTensor] = tensor, s[PlanAxis::kData] = 8 / tensor;
    Strategy other = s;
    other.samples = 2;
    ASSERT_NE(cache.profile(other), nullptr);
    const StepProfile& profile = *cache.profile(s);
    const Forecast f = closed_form(s, job.model, micro_batches(s, job.training.batch), {&profile, nullptr},
                                   cache.message_time(s, profile));
    const double simulated = simulate_strategy(job, s, f).simulated;
    EXPECT_LE(f.bound, simulated) << describe(s);
    // The single all-reduce of gradients begins after the last gradient.
    EXPECT_NEAR(f.time / simulated, 1, 0.1) << describe(s);
  }
}

constexpr auto kSelective = PlanRecompute::kSelective, kFull = PlanRecompute::kFull;

INSTANTIATE_TEST_SUITE_P(
    All, Forecasts,
    ::testing::Values(
        Case{"dp", {1, 8, 1, 1, 1, 1, 1}}, Case{"dp_zero1", {1, 8, 1, 1, 1, 1, 1}, 1},
        Case{"dp_zero2", {1, 8, 1, 1, 1, 1, 1}, 2}, Case{"dp_zero3", {1, 8, 1, 1, 1, 1, 1}, 3},
        Case{"zero1_of_four", {1, 8, 1, 1, 1, 1, 1}, 1, 4}, Case{"tp", {1, 1, 1, 1, 1, 1, 8}},
        Case{"tp2d", {1, 1, 1, 1, 1, 2, 4}}, Case{"dp_tp", {1, 2, 1, 1, 1, 1, 4}, 1},
        Case{"cp", {1, 2, 1, 1, 4, 1, 1}, 1}, Case{"ring", {1, 2, 1, 4, 1, 1, 1}, 1},
        Case{"ring_cp_tp", {1, 1, 1, 2, 2, 1, 2}}, Case{"pp_tp", {2, 1, 1, 1, 1, 1, 4}},
        Case{"pp_dp", {4, 2, 1, 1, 1, 1, 1}, 1, 1, 1, PlanSchedule::k1f1b, kFull},
        Case{"gpipe", {4, 1, 1, 1, 1, 1, 2}, 0, 1, 1, PlanSchedule::kGpipe, kFull},
        Case{"interleaved", {4, 1, 1, 1, 1, 1, 2}, 0, 2, 2, PlanSchedule::kInterleaved, kSelective},
        Case{"few_interleaved", {4, 2, 1, 1, 1, 1, 1}, 0, 8, 2, PlanSchedule::kInterleaved, kSelective},
        Case{"one_micro_batch", {4, 2, 1, 1, 1, 1, 1}, 0, 16, 2, PlanSchedule::kInterleaved, kFull},
        Case{"dp_over_pp",
             {2, 2, 1, 1, 1, 1, 2},
             1,
             1,
             1,
             PlanSchedule::k1f1b,
             {},
             PlanExperts::kRepeated,
             0,
             PlanAxis::kData},
        Case{"zero_bubble", {4, 1, 1, 1, 1, 1, 2}, 0, 1, 1, PlanSchedule::kZeroBubble},
        Case{"zero_bubble_full", {4, 1, 1, 1, 1, 1, 2}, 0, 1, 1, PlanSchedule::kZeroBubble, kFull},
        Case{"pp_zero3", {2, 4, 1, 1, 1, 1, 1}, 3, 1, 1, PlanSchedule::k1f1b, kSelective},
        Case{"ep", {1, 2, 4, 1, 1, 1, 1}, 1}, Case{"ep_tp", {1, 2, 2, 1, 1, 1, 2}, 1},
        Case{"etp", {1, 2, 2, 1, 1, 1, 2}, 1, 1, 1, PlanSchedule::k1f1b, kFull, PlanExperts::kWidth},
        Case{"spread", {1, 2, 2, 1, 1, 1, 2}, 1, 1, 1, PlanSchedule::k1f1b, kFull, PlanExperts::kSpread},
        Case{"spread_in_a_pipe",
             {2, 1, 2, 1, 1, 1, 2},
             0,
             1,
             1,
             PlanSchedule::k1f1b,
             PlanRecompute::kNone,
             PlanExperts::kSpread},
        Case{"pp_ep", {2, 1, 4, 1, 1, 1, 1}, 0, 1, 1, PlanSchedule::k1f1b, kFull},
        Case{"some_full",
             {1, 2, 1, 1, 1, 1, 4},
             1,
             2,
             1,
             PlanSchedule::k1f1b,
             kSelective,
             PlanExperts::kRepeated,
             3},
        Case{"some_selective",
             {2, 1, 1, 1, 1, 2, 2},
             0,
             2,
             1,
             PlanSchedule::k1f1b,
             {},
             PlanExperts::kRepeated,
             2}),
    [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace hyperrun::testing

// Bounds and certificates against simulations of every axis order. With few hosts and odd sizes, groups of
// some orders have equal numbers of devices on each host, and those of others do not.
#include <gtest/gtest.h>

#include <initializer_list>
#include <map>
#include <set>
#include <string>

#include "runtime/plan/candidates.h"
#include "runtime/plan/layer_profile_cache.h"
#include "runtime/plan/order_bounds.h"
#include "runtime/plan/search.h"
#include "runtime/plan/topology_straddle.h"
#include "runtime/spec/job_reader.h"

namespace hyperrun::testing {
namespace {

Job on(const std::string& supernode, int batch, const std::string& model, const std::string& parallel = "") {
  Job job =
      parse_job("supernode { " + supernode + " }\nmodel { " + model +
                    " }\ndata { corpus: \"none.txt\" }\ntraining { steps: 1 batch: " + std::to_string(batch) +
                    " lr: 1e-4 precision: \"bfloat16\" }\nparallel { " + parallel + " }",
                "planned", JobUse::kToBePlanned)
          .job;
  job.supernode.hbm = Bytes(std::int64_t{1} << 40);
  return job;
}

// Step of every order that the compiler accepts, ns.
std::map<std::string, double> simulated_orders(const Job& job, const Strategy& s) {
  std::map<std::string, double> steps;
  for (const Strategy& order : orders_of(s))
    if (const SimulatedCandidate leader = simulate_strategy(job, order, {}); leader.simulated > 0)
      steps[describe(order)] = leader.simulated;
  return steps;
}

void expect_bounded_in_any_order(const Job& job, const Strategy& s) {
  LayerProfileCache cache(job);
  OrderBounds bounds(job, cache);
  const double bound = bounds.of(s).in_any_order;
  const std::map<std::string, double> steps = simulated_orders(job, s);
  EXPECT_FALSE(steps.empty()) << describe(s);
  for (const auto& [order, step] : steps) EXPECT_LE(bound, step) << order;
  const auto own = steps.find(describe(s));
  if (own != steps.end()) {
    EXPECT_LE(bounds.in_own_order(s), own->second) << own->first;
  }
}

void expect_bounded_with_any_zero(const Job& job, Strategy s) {
  for (s.zero = 0; s.zero <= 3; ++s.zero) expect_bounded_in_any_order(job, s);
}

// Stages inside another axis: each stage has the same number of devices on all hosts, and hierarchical
// all-reduces. With the pipeline as the slowest axis it has eight devices on one host and four on the next.
TEST(Orders, BoundsHoldForStagesInsideAnotherAxis) {
  const Job even = on("devices: 24 profile: \"atlas_a2\"", 48,
                      "layers: 8 hidden: 1344 heads: 1 kv_heads: 1 head_dim: 96 vocab: 1000 sequence: 31");
  Strategy s;
  s[PlanAxis::kPipeline] = 2, s[PlanAxis::kData] = 12, s.samples = 4;
  expect_bounded_in_any_order(even, s);
  const Job ring = on("devices: 24 profile: \"a100\"", 24,
                      "layers: 5 hidden: 1344 heads: 2 kv_heads: 2 head_dim: 96 vocab: 1000 sequence: 2048");
  s[PlanAxis::kData] = 6, s[PlanAxis::kRing] = 2, s.samples = 1;
  expect_bounded_in_any_order(ring, s);
  // Fewer devices than two hosts have.
  const Job few = on("devices: 12 profile: \"a100\"", 24,
                     "layers: 5 hidden: 1344 heads: 2 kv_heads: 2 head_dim: 96 vocab: 1000 sequence: 2048");
  s[PlanAxis::kData] = 6, s[PlanAxis::kRing] = 1;
  expect_bounded_in_any_order(few, s);
}

// ZeRO can split nothing of latent attention's weights between its ranks and the heads.
TEST(Orders, BoundsHoldForNarrowWeights) {
  const Job job = on("devices: 40 profile: \"atlas_a2\"", 40,
                     R"(name: "deepseek_v3" layers: 4 hidden: 320 heads: 16 vocab: 514 sequence: 32 ffn: 64
                        latent { q_rank: 4096 kv_rank: 4096 nope_dim: 128 rope_dim: 64 value_dim: 128 })");
  for (const std::int32_t stages : {1, 2}) {
    Strategy s;
    s[PlanAxis::kPipeline] = stages, s[PlanAxis::kData] = 40 / stages;
    expect_bounded_with_any_zero(job, s);
  }
}

// Two-dimensional tensor parallelism leaves both ranks of latent attention whole. All tensor devices have
// their gradients, and each exchanges a part of them.
TEST(Orders, BoundsHoldIfTensorAxesRepeatAWeight) {
  const Job job = on("devices: 64 profile: \"atlas_a2\"", 64,
                     R"(name: "deepseek_v3" layers: 4 hidden: 2048 heads: 4 vocab: 512 sequence: 64 ffn: 64
                        latent { q_rank: 4096 kv_rank: 4096 nope_dim: 16 rope_dim: 16 value_dim: 16 })");
  for (const std::int32_t y : {2, 4}) {
    Strategy s;
    s[PlanAxis::kTensor] = 2, s[PlanAxis::kTensorY] = y, s[PlanAxis::kData] = 32 / y;
    expect_bounded_with_any_zero(job, s);
  }
}

// A gradient that ZeRO cannot scatter is rounded, then reduced once a step.
TEST(Orders, BoundsHoldForRoundedGradients) {
  const Job job = on("devices: 40 profile: \"atlas_a2\"", 40,
                     R"(name: "deepseek_v3" layers: 4 hidden: 384 heads: 37 vocab: 514 sequence: 32 ffn: 64
            latent { q_rank: 16007 kv_rank: 16001 nope_dim: 118 rope_dim: 8 value_dim: 118 })",
                     "gradients: \"bfloat16\"");
  Strategy s;
  s[PlanAxis::kData] = 40;
  expect_bounded_with_any_zero(job, s);
}

// The model's width does not divide over the data axes; that of feed-forward parts may.
Job with_an_odd_width() {
  return on("devices: 32 profile: \"atlas_a2\"", 32,
            "layers: 4 hidden: 1352 heads: 8 head_dim: 64 vocab: 512 sequence: 32 ffn: 16384");
}

TEST(Orders, BoundsKnowIfZeroSplitsOnlyFeedForwardParts) {
  const Job job = with_an_odd_width();
  LayerProfileCache cache(job);
  OrderBounds bounds(job, cache);
  for (const std::int32_t zero : {1, 2, 3}) {
    Strategy s;
    s[PlanAxis::kData] = 32, s.zero = zero;
    const double step = simulate_strategy(job, s, {}).simulated;
    EXPECT_LE(bounds.of(s).in_any_order, step);
    EXPECT_GT(bounds.of(s).in_any_order, 0.8 * step);
    s[PlanAxis::kData] = 8, s[PlanAxis::kContext] = 4;
    expect_bounded_in_any_order(job, s);
  }
}

Strategy of(std::int32_t data, std::int32_t stages) {
  Strategy s;
  s[PlanAxis::kData] = data, s[PlanAxis::kPipeline] = stages, s.zero = 1;
  return s;
}

void expect_forecast_as_if_alone(const Job& job, const Strategy& s, const Strategy& before) {
  LayerProfileCache alone(job), behind(job);
  ASSERT_NE(behind.profile(before), nullptr);
  EXPECT_EQ(*behind.profile(s), *alone.profile(s)) << describe(s);
}

// A forecast must not depend on earlier forecasts with the same axes.
TEST(Orders, ForecastsKnowWhatZeroSplits) {
  expect_forecast_as_if_alone(with_an_odd_width(), of(8, 4), of(32, 1));
  for (
      const char* model :
      {R"(hidden: 1352 vocab: 514 ffn: 16384 latent { q_rank: 100 kv_rank: 100 nope_dim: 34 rope_dim: 16 value_dim: 34 }
           experts { count: 9 choices: 2 ffn: 1000 dense_layers: 6 capacity { factor: 1.25 } })",
       R"(hidden: 1352 vocab: 514 ffn: 1000 latent { q_rank: 100 kv_rank: 100 nope_dim: 34 rope_dim: 16 value_dim: 34 }
           experts { count: 9 choices: 2 ffn: 1000 shared: 64 capacity { factor: 1.25 } })",
       R"(hidden: 1536 vocab: 514 ffn: 1024
           latent { q_rank: 4096 kv_rank: 4096 nope_dim: 34 rope_dim: 16 value_dim: 34 })"}) {
    const Job job = on("devices: 96 profile: \"atlas_a2\"", 96,
                       std::string("name: \"deepseek_v3\" layers: 12 heads: 8 sequence: 32 ") + model);
    expect_forecast_as_if_alone(job, of(32, 3), of(24, 4));
  }
}

// Orders that are equivalent for the machine take equal times; some others do not.
TEST(Orders, EquivalentForTheMachineTakeEqualTime) {
  const Job job =
      on("devices: 16 profile: \"atlas_a2\"", 16, "layers: 2 hidden: 512 heads: 8 vocab: 1000 sequence: 512");
  Strategy s;
  s[PlanAxis::kData] = 4, s[PlanAxis::kContext] = s[PlanAxis::kTensor] = 2, s.zero = 1;
  std::map<std::string, std::set<double>> steps;
  std::set<double> all;
  std::size_t orders = 0;
  for (const Strategy& order : orders_of(s)) {
    const double step = simulate_strategy(job, order, {}).simulated;
    ASSERT_GT(step, 0) << describe(order);
    steps[describe(in_first_order(order, machine_of(job.supernode)))].insert(step);
    all.insert(step), ++orders;
  }
  EXPECT_LT(steps.size(), orders);
  EXPECT_GT(all.size(), 1U);
  for (const auto& [first, of_alike] : steps) EXPECT_EQ(of_alike.size(), 1U) << first;
}

// Orders with equal forecasts count with their bound, unless they are equivalent for the machine.
TEST(Orders, WithEqualForecastsAreDroppedWithTheirBound) {
  const auto least_dropped = [](const Job& job, std::initializer_list<const char*> only) {
    Space space = spaces().front();
    for (const char* constraint : only) space.only.push_back(constraint_of(constraint));
    return candidates_of(job, {.space = &space, .leaders = 8}).least_dropped;
  };
  const char* model = R"(name: "gpt2" layers: 3 hidden: 1024 heads: 8 vocab: 1000 sequence: 96)";
  const Job hosts = on("devices: 12 profile: \"h100\"", 24, model),
            host = on("devices: 4 profile: \"h100\"", 24, model);
  EXPECT_LT(least_dropped(hosts, {"zero=3", "dp=2", "ring=3", "cp=2", "recompute=full", "samples=6"}), 1e12);
  EXPECT_GT(least_dropped(host, {"zero=1", "dp=2", "tp=2", "recompute=full", "samples=6"}), 1e12);
}

// An order with an equal forecast may be faster. The certificate allows for it, and here it is found.
TEST(Orders, WithEqualForecastsAreNotTakenAsEqual) {
  const Job job = on("devices: 12 profile: \"h100\"", 24,
                     R"(name: "gpt2" layers: 3 hidden: 1024 heads: 8 vocab: 1000 sequence: 96)");
  Space space = spaces().front();
  for (const char* only : {"zero=3", "dp=2", "ring=3", "cp=2", "recompute=full", "samples=6"})
    space.only.push_back(constraint_of(only));
  const Search found = search(job, {.space = &space, .leaders = 8});
  space.only.push_back(constraint_of("innermost=dp"));
  const Search innermost = search(job, {.space = &space, .leaders = 8});
  ASSERT_TRUE(found.found() && innermost.found());
  EXPECT_LE(found.least_bound, innermost.leaders.front().simulated);
  EXPECT_LE(found.leaders.front().simulated, innermost.leaders.front().simulated);
}

}  // namespace
}  // namespace hyperrun::testing

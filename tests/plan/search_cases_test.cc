// Jobs for which the search once found nothing, too little, or gave no reason.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "runtime/compile/compile.h"
#include "runtime/plan/forecast_calibration.h"
#include "runtime/plan/search.h"
#include "runtime/plan/transfers.h"
#include "runtime/spec/job_reader.h"
#include "tests/plan/worlds.h"

namespace hyperrun::testing {
namespace {

// The update of the bias reads what the forward pass has counted, so nothing is rematerialised for it.
TEST(Search, PlansExpertsBalancedByABias) {
  Job job = planned_mixture(4, 3, 4);
  job.model.experts.bias_rate = 1e-3;
  const Search s = search(job, {.leaders = 1});
  ASSERT_TRUE(s.found());
  Strategy full = s.leaders.front().strategy;
  full.recompute = PlanRecompute::kFull, full.extra_recompute_layers = 0;
  const Compiled compiled = compile(job_of(job, full));
  for (const Program& p : compiled.plan.roles.front().programs)
    for (const std::string& origin : p.origins)
      EXPECT_FALSE(origin.find("load.sum.again") != origin.npos) << origin;
}

// A budget that strategies without recomputation exceed.
TEST(Search, DropsStrategiesThatDoNotFit) {
  Job job = planned_llama(4, 4, 8);
  job.supernode.hbm = Bytes(3'000'000'000);
  job.supernode.pool = Bytes(0);
  const Search s = search(job, {.leaders = 4});
  ASSERT_TRUE(s.found());
  EXPECT_GT(s.do_not_fit, 0);
  EXPECT_LE(s.leaders.front().hbm, job.supernode.hbm);
}

// The requested number of layers is off by more than a few.
TEST(Search, RepairsTheNumberOfRecomputingLayers) {
  Job job = planned_llama(2, 24, 8);
  job.supernode.pool = Bytes(0);
  Strategy s;
  s[PlanAxis::kData] = 2, s.samples = 4;
  ASSERT_TRUE(simulate_strategy(job, s, {}).fits);
  Strategy some = s;
  some.extra_recompute_layers = 12;
  job.supernode.hbm = simulate_strategy(job, some, {}).hbm;
  ASSERT_FALSE(simulate_strategy(job, s, {}).fits);
  const SimulatedCandidate near = simulate_or_repair(job, spaces().front(), s, {});
  ASSERT_GT(near.simulated, 0) << near.why_not;
  EXPECT_LE(near.strategy.extra_recompute_layers, 13) << "more than it takes";
  EXPECT_GT(near.hbm_before_repair, job.supernode.hbm);
}

// Expects that every strategy of the constrained space is found if HBM is what it takes.
void expect_each_is_found(Job job, const std::vector<const char*>& constraints) {
  job.supernode.pool = Bytes(0);
  Space space = spaces().front();
  for (const char* text : constraints) space.only.push_back(constraint_of(text));
  const Search roomy = search(job, {.space = &space, .leaders = 100});
  ASSERT_GT(roomy.leaders.size(), 2U);
  for (const SimulatedCandidate& l : roomy.leaders) {
    if (l.simulated == 0) continue;
    job.supernode.hbm = l.hbm;
    const Search s = search(job, {.space = &space, .leaders = 100});
    EXPECT_TRUE(s.found()) << describe(l.strategy) << " takes " << to_string(l.hbm);
    // The certificate is withdrawn if a bound does not hold, whatever the reason.
    for (const SimulatedCandidate& found : s.leaders)
      EXPECT_GT(found.forecast.bound, 0) << describe(found.strategy);
  }
}

// By their forecasts none fits, as padding of small tensors is overestimated.
TEST(Search, TriesUnlikelyCandidatesIfNothingElseFits) {
  const Bytes enough(std::int64_t{1} << 30);
  expect_each_is_found(planned_tiny(2, 4, 4, 512, enough),
                       {"recompute=selective to full", "pp=2", "samples=2"});
  expect_each_is_found(planned_tiny(4, 4, 4, 512, enough),
                       {"recompute=selective to full", "pp=2", "cp=2", "samples=2", "innermost=pp"});
}

// 65,536 or fewer micro-batches of one sequence through 512 layers: no simulation is started.
TEST(Search, TellsWhatIsTooLargeToSimulate) {
  Job job = planned_llama(16, 512, 1 << 20);
  job.supernode.pool = Bytes(0);
  const Search s = search(job, {.leaders = 2});
  EXPECT_FALSE(s.found());
  ASSERT_TRUE(s.too_large);
  EXPECT_LE(s.too_large->forecast.memory, job.supernode.hbm.value);
  const std::int64_t micro_batches =
      (1 << 20) / (s.too_large->strategy.replicas() * s.too_large->strategy.samples);
  EXPECT_GT(512 * micro_batches, kMostPasses);
  for (const SimulatedCandidate& l : s.leaders) EXPECT_TRUE(l.fits) << describe(l.strategy);
}

// It fits only with all layers recomputed, so the constraint is no contradiction.
TEST(Search, NamesTheSmallestWithRecomputationInSomeLayers) {
  Job job = planned_llama(4, 4, 8);
  job.supernode.hbm = Bytes(1'200'000'000);
  job.supernode.pool = Bytes(0);
  Space space = spaces().front();
  for (const char* text : {"recompute=none to selective", "tp=2", "zero=0"})
    space.only.push_back(constraint_of(text));
  const Search s = search(job, {.space = &space, .leaders = 1});
  EXPECT_FALSE(s.found());
  ASSERT_FALSE(s.smallest.empty());
  EXPECT_GT(s.smallest.front().strategy.extra_recompute_layers, 0);
  EXPECT_EQ(s.smallest.front().strategy.recompute, PlanRecompute::kNone);
}

// Nothing need be compiled again to know them.
TEST(Search, LeadersHaveTheirFusion) {
  const Job job = planned_llama(4, 4, 8);
  const Search s = search(job, {.leaders = 1});
  ASSERT_TRUE(s.found());
  const SimulatedCandidate& best = s.leaders.front();
  const Fusion again = fusion_of(compile(job_of(job, best.strategy)).plan, job.supernode);
  ASSERT_EQ(best.fusion.groups.size(), again.groups.size());
  ASSERT_FALSE(again.groups.empty());
  for (std::size_t g = 0; g < again.groups.size(); ++g) {
    EXPECT_EQ(best.fusion.groups[g].axes, again.groups[g].axes);
    EXPECT_EQ(best.fusion.groups[g].uses.size(), again.groups[g].uses.size());
  }
}

// Offloaded tensors take more of the pool than HBM lacks. The search learns how much from the first refusals,
// and plans no transfers for strategies that would be refused as well.
TEST(Search, LearnsPoolUse) {
  Job job = planned_llama(8, 12, 8);
  job.supernode.hbm = Bytes(1'200'000'000);
  job.supernode.pool = Bytes(64'000'000'000);
  const Search enough = search(job, {.leaders = 1});
  ASSERT_TRUE(enough.found());
  job.supernode.pool = Bytes(enough.leaders.front().pool.value * 8 / 10);
  const Search s = search(job, {.leaders = 1});  // one after another, so in this order
  const auto share = static_cast<double>(job.supernode.pool.value / job.supernode.devices);
  ForecastCalibration beyond;
  for (const SimulatedCandidate& l : s.leaders) {
    ASSERT_EQ(l.strategy.memory, PlanMemory::kHyperOffload) << describe(l.strategy);
    const auto lacks = static_cast<double>(l.forecast.mean - job.supernode.hbm.value);
    EXPECT_LE(lacks * beyond.factor(l.strategy), share) << describe(l.strategy);
    beyond.learn(l.strategy, lacks, static_cast<double>(l.pool.value / job.supernode.devices));
  }
  EXPECT_GT(std::ranges::count(s.leaders, false, &SimulatedCandidate::fits), 1);
}

// No strategy has transfers then, and the certificate allows for those.
TEST(Search, SkipsTransfersOfLongStepsIfOthersFit) {
  Job job = planned_tiny(2, 2, 4, 64, Bytes(std::int64_t{1} << 30));
  job.supernode.hbm = Bytes(search(job, {.leaders = 1}).leaders.front().hbm.value * 8 / 10);
  const Search known = search(job, {.leaders = 8}), s = search(job, {.leaders = 8, .long_step = 0});
  ASSERT_TRUE(known.found() && s.found());
  const auto moves = [](const SimulatedCandidate& l) {
    return l.strategy.memory != PlanMemory::kNone && l.simulated > 0;
  };
  EXPECT_TRUE(std::ranges::any_of(known.leaders, moves));
  EXPECT_TRUE(std::ranges::none_of(s.leaders, moves));
  EXPECT_GE(known.leaders.front().simulated, s.least_bound);
}

// The most promising strategy, refused at first, is planned in full if nothing else is found.
TEST(Search, PlansTransfersOfLongStepsIfNothingElseFits) {
  const Job job = planned_tiny(2, 4, 4, 64, Bytes(4'000 * 1024));
  Space moved = spaces().front();
  moved.only = {constraint_of("memory=hyperoffload"), constraint_of("recompute=none")};
  const SearchOptions one{.space = &moved, .leaders = 1, .unlikely = false};
  SearchOptions leaves = one;
  leaves.long_step = 0;
  const Search known = search(job, one), s = search(job, leaves);
  ASSERT_TRUE(known.found() && s.found());
  ASSERT_EQ(known.leaders.front().strategy.memory, PlanMemory::kHyperOffload);
  EXPECT_EQ(describe(s.leaders.front().strategy), describe(known.leaders.front().strategy));
  EXPECT_EQ(s.leaders.front().simulated, known.leaders.front().simulated);
}

TEST(Search, NamesTheSmallestIfNothingFits) {
  Job job = planned_llama(4, 4, 8);
  job.supernode.hbm = Bytes(100'000'000);
  job.supernode.pool = Bytes(0);
  const Search s = search(job, {.leaders = 4});
  EXPECT_FALSE(s.found());
  ASSERT_FALSE(s.smallest.empty());
  EXPECT_TRUE(std::ranges::is_sorted(s.smallest, {}, &MemoryNeed::expected));
  for (const MemoryNeed& needs : s.smallest) EXPECT_LE(s.least_memory, needs.least);
}

// Jobs that hardly fit, and by some forecasts do not. The search finds what fits without a hint.
struct Hardly {
  const char* name;
  const char* job;
  std::vector<std::string> asked;  // constraints of a search for that alone
};

class FitsHardly : public ::testing::TestWithParam<Hardly> {};

TEST_P(FitsHardly, IsFound) {
  const Hardly& c = GetParam();
  const std::string rest = R"( data { corpus: "none.txt" })";
  const Job job = parse_job(c.job + rest, c.name, JobUse::kToBePlanned).job;
  const Search s = search(job, {.leaders = 4});
  ASSERT_TRUE(s.found());
  Space asked = spaces().front();
  for (const std::string& text : c.asked) asked.only.push_back(constraint_of(text));
  const Search alone = search(job, {.space = &asked, .leaders = 4});
  ASSERT_TRUE(alone.found());
  EXPECT_LE(s.leaders.front().simulated, 1.01 * alone.leaders.front().simulated)
      << describe(s.leaders.front().strategy) << " is found, and not "
      << describe(alone.leaders.front().strategy);
}

INSTANTIATE_TEST_SUITE_P(
    Search, FitsHardly,
    ::testing::Values(
        Hardly{"sums_of_squares_are_parted",
               R"(supernode { devices: 1 profile: "matrix384" hbm: "96 MiB" pool: "64 GiB" }
                  model { layers: 16 hidden: 512 heads: 8 kv_heads: 4 vocab: 4096 sequence: 256 }
                  training { steps: 1 batch: 2 lr: 1e-3 clip_norm: 0 })",
               {"memory=hyperoffload"}},
        Hardly{"stages_take_unequal_shares_of_the_pool",
               R"(supernode { devices: 3 profile: "a100" hbm: "56000000 B" pool: "450000000 B" }
                  model { layers: 4 hidden: 768 heads: 4 kv_heads: 1 vocab: 512 sequence: 256 }
                  training { steps: 1 batch: 4 lr: 1e-3 })",
               {"schedule=1f1b", "memory=hyperoffload"}},
        Hardly{"little_less_stays_than_there_is",
               R"(supernode { devices: 1 profile: "a100" hbm: "143379353 B" pool: "1099511627776 B" }
                  model { layers: 4 hidden: 64 heads: 8 kv_heads: 4 vocab: 32000 sequence: 512
                    experts { count: 2 choices: 2 ffn: 64 dense_layers: 1 capacity { factor: 1.25 } } }
                  training { steps: 1 batch: 8 lr: 1e-3 clip_norm: 1 })",
               {"memory=hyperoffload"}},
        Hardly{"what_fits_is_not_what_is_fastest",
               R"(supernode { devices: 3 profile: "a100" hbm: "372534848 B" pool: "0 B" }
                  model { layers: 4 hidden: 768 heads: 4 kv_heads: 1 vocab: 1000 sequence: 128
                    experts { count: 8 choices: 2 ffn: 768 dense_layers: 1 capacity { factor: 1.25 } }
                    tied_head: true }
                  training { steps: 1 batch: 8 lr: 1e-3 precision: "float32" })",
               {"recompute=full", "samples=1", "schedule=1f1b"}},
        Hardly{"the_pool_is_as_large_as_was_told",
               R"(supernode { devices: 1 profile: "matrix384" hbm: "135895449 B" pool: "72923136 B" }
                  model { layers: 4 hidden: 512 heads: 8 kv_heads: 4 vocab: 512 sequence: 1024 }
                  training { steps: 1 batch: 1 lr: 1e-3 clip_norm: 0 })",
               {"recompute=full"}},
        Hardly{"what_is_kept_is_made_again_and_needs_no_pool",
               R"(supernode { devices: 1 profile: "matrix384" hbm: "2701809 B" pool: "3258368 B" }
                  model { layers: 4 hidden: 64 heads: 8 kv_heads: 4 vocab: 512 sequence: 256 }
                  training { steps: 1 batch: 1 lr: 1e-3 clip_norm: 0 })",
               {"recompute=none"}}),
    [](const auto& info) { return std::string(info.param.name); });

// Forecasts of a restricted space may be too high and others too low. Here "deepspeed" has a step 4 % shorter
// than the best of all forecasts.
TEST(Search, FindsTheBestOfRestrictedSpaces) {
  const Job job = parse_job(R"(supernode { devices: 8 profile: "matrix384" hbm: "4 GB" }
                               model { layers: 8 hidden: 1024 heads: 16 kv_heads: 4 vocab: 32768 sequence: 8192
                                 experts { count: 8 choices: 2 ffn: 2048 } }
                               data { corpus: "none.txt" }
                               training { steps: 1 batch: 8 lr: 1e-4 precision: "bfloat16" })",
                            "restricted", JobUse::kToBePlanned)
                      .job;
  const Search all = search(job, {.leaders = 2});
  ASSERT_TRUE(all.found());
  for (const char* name : {"megatron", "deepspeed"}) {
    const Search s = search(job, {.space = &space_named(name), .leaders = 2});
    ASSERT_TRUE(s.found()) << name;
    EXPECT_LE(all.leaders.front().simulated, s.leaders.front().simulated) << name;
  }
}

// Forecasts are less than half of the simulated steps. All leaders of the first job have ZeRO 3, though ZeRO
// 1 is a quarter faster. Leaders of the second do not offload, as transfers are forecast to take three times
// as long.
TEST(Search, TriesTransfersOfEachKind) {
  struct Kind {
    const char* job;
    const char* only;
  };
  for (const auto& [text, only] : {Kind{R"(supernode { hbm: "140 MB" devices: 4 profile: "h100" }
                                           model { layers: 2 hidden: 512 heads: 4 kv_heads: 1 vocab: 32000
                                             sequence: 512 }
                                           data { corpus: "none.txt" }
                                           training { steps: 1 batch: 8 lr: 1e-4 precision: "bfloat16" })",
                                        "zero=1"},
                                   Kind{R"(supernode { devices: 2 hbm: "5 MiB" pool: "200 MiB" }
                                           model { layers: 4 hidden: 64 heads: 2 vocab: 512 sequence: 128 }
                                           data { corpus: "none.txt" }
                                           training { steps: 1 batch: 4 lr: 1e-3 })",
                                        "memory=hyperoffload"}}) {
    const Job job = parse_job(text, "kinds", JobUse::kToBePlanned).job;
    const Search all = search(job, {});
    ASSERT_TRUE(all.found());
    Space with = spaces().front();
    with.only = {constraint_of(only)};
    const Search s = search(job, {.space = &with});
    ASSERT_TRUE(s.found()) << only;
    EXPECT_LE(all.leaders.front().simulated, s.leaders.front().simulated) << only;
  }
}

}  // namespace
}  // namespace hyperrun::testing

// The planner's answers beside its ranking: the Pareto front, other machines, uses of axes, nearest feasible
// machines.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "runtime/base/error.h"
#include "runtime/compile/compile.h"
#include "runtime/plan/choice_ablation.h"
#include "runtime/plan/device_counts.h"
#include "runtime/plan/fusion.h"
#include "runtime/plan/nearest_feasible.h"
#include "runtime/plan/pareto.h"
#include "runtime/plan/sensitivity.h"
#include "runtime/spec/job_reader.h"
#include "tests/plan/worlds.h"

namespace hyperrun::testing {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

// Without a pool. What lies in the pool depends on the budget, so strategies with it could not be listed
// once.
Job small_world() {
  Job job = planned_llama(4, 4, 8);
  job.supernode.hbm = Bytes(12'000'000'000);
  job.supernode.pool = Bytes(0);
  return job;
}

// Error of the closed form (forecast_test.cc), by which leaders are chosen.
constexpr double kTime = 1.08, kMemory = 1.25;

TEST(Front, IsNotDominatedByAnyStrategy) {
  const Job job = small_world();
  const Search all = search(job, {.leaders = 100'000});
  const Search few = search(job, {.leaders = 6});
  FrontOptions options;
  options.devices = {job.supernode.devices};
  const Front front = pareto_front(job, few, options);
  ASSERT_GE(front.points.size(), 3U);
  for (const FrontPoint& p : front.points)
    for (const SimulatedCandidate& l : all.leaders) {
      if (l.simulated == 0 || l.hbm > p.leader.hbm) continue;
      EXPECT_GE(l.simulated * (1 + p.gap) * (1 + 1e-9), p.leader.simulated) << describe(l.strategy);
      EXPECT_GE(l.simulated * kTime, p.leader.simulated)
          << describe(l.strategy) << " for " << describe(p.leader.strategy);
    }
  // No strategy that needs much less memory may be missing.
  for (const SimulatedCandidate& l : all.leaders) {
    if (l.simulated == 0) continue;
    double budget = static_cast<double>(job.supernode.hbm.value);
    for (const FrontPoint& p : front.points)
      if (static_cast<double>(p.budget.value) >= kMemory * static_cast<double>(l.hbm.value))
        budget = std::min(budget, static_cast<double>(p.budget.value));
    EXPECT_TRUE(std::ranges::any_of(front.points, [&](const FrontPoint& p) {
      return static_cast<double>(p.leader.hbm.value) <= budget && p.leader.simulated <= kTime * l.simulated;
    })) << describe(l.strategy);
  }
}

TEST(Front, HasFewerAndMoreDevicesWithoutDuplicates) {
  const Job job = planned_llama(2, 2, 4);
  FrontOptions options;
  options.leaders = 1;
  const Front front = pareto_front(job, search(job, {.leaders = 1}), options);
  std::vector<std::int32_t> counts;
  for (const FrontCount& c : front.counts) {
    counts.push_back(c.devices);
    EXPECT_TRUE(c.fits && c.divides) << c.devices;
  }
  EXPECT_THAT(counts, ElementsAre(1, 2, 4));
  for (const FrontPoint& p : front.points) {
    EXPECT_LE(p.leader.hbm, p.budget);
    EXPECT_EQ(p.leader.strategy.devices(), p.devices);
    for (const FrontPoint& q : front.points) EXPECT_FALSE(dominates(q, p));
  }
  options.devices = {0};
  EXPECT_THROW(pareto_front(job, {}, options), Error);
}

TEST(Front, IncludesSimulationsOfOtherAnswers) {
  const Job job = small_world();
  Search s = search(job, {.leaders = 1});
  simulate_alternatives(job, spaces().front(), s, {});
  FrontOptions options;
  options.devices = {job.supernode.devices}, options.leaders = 1;
  const Front front = pareto_front(job, s, options);
  for (const SimulatedAlternative& a : s.others) {
    if (a.leader.simulated == 0) continue;
    for (const FrontPoint& p : front.points)
      EXPECT_FALSE(dominates({p.devices, p.budget, a.leader, 0}, p)) << describe(a.leader.strategy);
  }
}

TEST(Front, PoolGrowsWithDevices) {
  Job job = planned_llama(4, 4, 8);
  job.supernode.pool = Bytes(4000);
  EXPECT_EQ(with_devices(job, 2).supernode.pool, Bytes(2000));
  EXPECT_EQ(with_devices(job, 8).supernode.pool, Bytes(8000));
  EXPECT_EQ(with_devices(job, 4).supernode, job.supernode);
}

TEST(ChoiceAblation, InnermostAxisIsNoSlowerThanTheFirstInThatOrder) {
  const Job job = small_world();
  Space space = spaces().front();
  space.only = {constraint_of("pp=2")};
  Search s = search(job, {.space = &space, .leaders = 1});
  simulate_alternatives(job, space, s, {});
  const Strategy best = s.leaders.front().strategy;
  const Dimension& innermost = *std::ranges::find(dimensions(), "innermost", &Dimension::key);
  std::size_t orders = 0;
  for (const Verdict& v : verdicts(s, job.supernode.hbm)) {
    if (v.key != "innermost" || v.chosen) continue;
    for (const Strategy& order : orders_of(best))
      if (innermost.text(innermost.value(order)) == v.value) {
        ++orders;
        EXPECT_GT(v.simulated, 0) << v.value;
        EXPECT_LE(v.simulated, simulate_strategy(job, order, {}).simulated) << describe(order);
      }
  }
  EXPECT_GT(orders, 0U);
}

TEST(ChoiceAblation, HasAVerdictForEachDimension) {
  const Job job = small_world();
  const Search s = search(job, {.leaders = 1});
  const std::vector<Verdict> list = verdicts(s, job.supernode.hbm);
  for (const Dimension& d : dimensions()) {
    const auto is_chosen = [&](const Verdict& v) { return v.key == d.key && v.chosen; };
    EXPECT_EQ(std::ranges::count_if(list, is_chosen), 1) << d.name;
  }
  const auto has = [&](const char* key, const char* words) {
    return std::ranges::any_of(list,
                               [&](const Verdict& v) { return v.key == key && v.sentence.ends_with(words); });
  };
  EXPECT_TRUE(has("ep", "; the space has no other")) << "there are no experts";
  EXPECT_TRUE(has("memory", "; no other came to a forecast")) << "there is no pool";
  EXPECT_FALSE(has("tp", "other"));
}

// The wanted value occurs only in an axis order that was not worth a forecast.
TEST(ChoiceAblation, IncludesValuesKnownFromSimulationsOnly) {
  Search s;
  SimulatedCandidate& leader = s.leaders.emplace_back();
  leader.simulated = 1e6, leader.strategy[PlanAxis::kData] = 4;
  const std::vector<Verdict> list = verdicts(s, Bytes(1));
  EXPECT_EQ(list.size(), dimensions().size());
  EXPECT_TRUE(std::ranges::all_of(list, &Verdict::chosen));
}

// Nothing with this value fits, and the most promising strategy was repaired into one with another value.
TEST(ChoiceAblation, TellsTheStrategyThatARepairLedTo) {
  Search s;
  SimulatedCandidate& best = s.leaders.emplace_back();
  best.simulated = best.forecast.time = 1e6;
  best.strategy.memory = PlanMemory::kHyperOffload;
  SimulatedAlternative& other = s.others.emplace_back();
  other.requested[PlanAxis::kTensor] = 2;
  other.leader.strategy = other.requested;
  other.leader.strategy.memory = PlanMemory::kHyperOffload;
  other.leader.simulated = 3e6;
  s.alternatives.count_forecast(other.requested, {.time = 2e6});
  const auto is_asked = [](const Verdict& v) { return v.key == "memory" && !v.chosen; };
  const std::vector<Verdict> list = verdicts(s, Bytes(1));
  const auto told = std::ranges::find_if(list, is_asked);
  ASSERT_NE(told, list.end());
  EXPECT_THAT(
      told->sentence,
      HasSubstr("tried, forecast 2.00 ms, +100.0 % on the first's forecast of 1.00 ms (tp 2, 1 sequence"));
  EXPECT_THAT(told->sentence,
              HasSubstr(", but it fits only as tp 2, 1 sequence a micro-batch, hyperoffload: 3.00 ms"));
  EXPECT_EQ(told->simulated, 0);
}

Job tight_job(const char* supernode) {
  return parse_job(std::string("supernode { devices: 4 hbm: \"11 MiB\" ") + supernode + R"(}
                     model { layers: 4 hidden: 192 heads: 6 kv_heads: 2 vocab: 1024 sequence: 128 tied_head: true }
                     data { corpus: "none.txt" }
                     training { steps: 1 batch: 4 lr: 1e-3 })",
                   "tight", JobUse::kToBePlanned)
      .job;
}

// The most promising strategy with an axis innermost does not fit, another one does.
TEST(ChoiceAblation, SearchesWhereTheMostPromisingDoesNotFit) {
  const Job job = tight_job("");
  Search s = search(job, {.leaders = 8});
  simulate_alternatives(job, spaces().front(), s, {});
  Space with = spaces().front();
  with.only = {constraint_of("innermost=pp")};
  const Search of_value = search(job, {.space = &with, .leaders = 8});
  ASSERT_TRUE(of_value.found());
  for (const Verdict& v : verdicts(s, job.supernode.hbm))
    if (v.key == "innermost" && v.value == "pp") {
      EXPECT_GT(v.simulated, 0) << v.sentence;
    }
}

TEST(ChoiceAblation, SimulatesOffloadingIfThatIsQuick) {
  const Job job = tight_job("pool: \"1 GiB\"");
  Search s = search(job, {.leaders = 1});
  ASSERT_TRUE(s.found());
  simulate_alternatives(job, spaces().front(), s, {});
  std::size_t moved = 0;
  for (const Verdict& v : verdicts(s, job.supernode.hbm)) {
    EXPECT_THAT(v.sentence, Not(HasSubstr("not simulated"))) << v.value;
    moved += !v.chosen && v.simulated > 0 && v.strategy->memory == PlanMemory::kHyperOffload;
  }
  EXPECT_GT(moved, 0U);
}

// Also if planning its transfers takes long, but not many minutes.
TEST(ChoiceAblation, SimulatesStrategiesForecastToBeFaster) {
  const Job job = parse_job(R"(supernode { devices: 8 hbm: "3 MiB" pool: "1 GiB" }
                               model { layers: 12 hidden: 128 heads: 8 kv_heads: 8 vocab: 512 sequence: 256 }
                               data { corpus: "none.txt" }
                               training { steps: 1 batch: 16 lr: 1e-3 })",
                            "faster", JobUse::kToBePlanned)
                      .job;
  Search s = search(job, {.leaders = 1});
  ASSERT_TRUE(s.found());
  const std::size_t before = s.others.size();
  simulate_alternatives(job, spaces().front(), s, {});
  std::size_t slower = 0;
  for (const Verdict& v : verdicts(s, job.supernode.hbm))
    if (v.sentence.starts_with("not simulated")) {
      EXPECT_GT(v.forecast, s.leaders.front().forecast.time) << v.key << " " << v.value << ": " << v.sentence;
      ++slower;
    }
  EXPECT_GT(slower, 0U);
  EXPECT_GT(s.others.size(), before);
}

TEST(ChoiceAblation, TellsTheLargestChangesIncreasesFirst) {
  SimulatedCandidate best, other;
  best.parts = {.compute = Nanos(100'000), .communication = Nanos(50'000), .bubble = Nanos(90'000)};
  other.parts = {.compute = Nanos(130'000), .communication = Nanos(55'000), .bubble = Nanos(20'000)};
  other.parts.optimizer = Nanos(20'000);
  EXPECT_EQ(where_it_loses(best, other), "computing +30.0 us, optimizer +20.0 us, bubble -70.0 us");
  EXPECT_EQ(where_it_loses(best, best), "");
}

TEST(Sensitivity, LessOfAFigureIsNeverFasterAndMoreNeverSlower) {
  Job job = planned_llama(4, 4, 8);
  const Search s = search(job, {.leaders = 2});
  const SimulatedCandidate& best = s.leaders.front();
  ASSERT_EQ(best.strategy.memory, PlanMemory::kNone);
  const std::vector<WhatIf> list = sensitivity(job, best, {});
  bool faster = false;
  for (const WhatIf& w : list) {
    const std::string what = w.figure + " x " + std::to_string(w.factor);
    if (w.factor < 1) {
      EXPECT_TRUE(w.present.simulated == 0 || w.present.simulated >= best.simulated) << what;
      EXPECT_GE(w.best.simulated * (1 + s.gap()) * (1 + 1e-9), best.simulated) << what;
    } else {
      EXPECT_LE(w.present.simulated, best.simulated) << what;
      faster = faster || w.present.simulated < best.simulated;
    }
    EXPECT_GE(w.gain(), w.present.simulated > 0 ? 1 : 0) << what;
    // The plan does not use the pool.
    if (w.figure.ends_with("of the pool")) {
      EXPECT_EQ(w.present.simulated, best.simulated) << what;
    }
    if (w.factor < 1 && w.present.simulated == best.simulated) {
      EXPECT_FALSE(w.searched) << what;
      EXPECT_FALSE(w.other()) << what;
    }
  }
  EXPECT_TRUE(faster) << "nothing of the machine matters";
}

std::vector<std::string> names(const std::vector<MachineFigure>& figures) {
  std::vector<std::string> list;
  for (const MachineFigure& f : figures) list.push_back(f.name);
  return list;
}

TEST(Sensitivity, HasOnlyLevelsThatTheDevicesReach) {
  Job job = planned_llama(16, 4, 16);
  EXPECT_THAT(names(machine_figures(job.supernode)), Contains("bandwidth of the node"));
  EXPECT_THAT(names(machine_figures(job.supernode)), Not(Contains("bandwidth of the supernode")));
  job.supernode.pool = Bytes(0);
  EXPECT_THAT(names(machine_figures(job.supernode)), Not(Contains("room of the pool")));
}

TEST(Sensitivity, EachFigureIsChangedAloneAndBack) {
  const SupernodeSpec spec = planned_llama(16, 4, 16).supernode;
  for (const MachineFigure& figure : machine_figures(spec)) {
    SupernodeSpec changed = spec;
    figure.scale(changed, 2);
    EXPECT_FALSE(changed == spec) << figure.name;
    figure.scale(changed, 0.5);
    EXPECT_EQ(changed, spec) << figure.name;
  }
}

const FusedAxes* find(const Fusion& fusion, const std::string& axes) {
  const auto it = std::ranges::find(fusion.groups, axes, &FusedAxes::axes);
  return it == fusion.groups.end() ? nullptr : &*it;
}

std::string axes_of(const Fusion& fusion) {
  std::string text;
  for (const FusedAxes& g : fusion.groups) text += g.axes + " ";
  return text;
}

bool uses(const FusedAxes& group, const std::string& collective, Category moved) {
  return std::ranges::any_of(group.uses, [&](const FusedUse& u) {
    return u.collective == collective && u.moved == moved && u.bytes > 0;
  });
}

TEST(Fusion, DataAndExpertAxesReduceGradientsTogetherAndTokensGoToExpertsAlone) {
  const Job base = planned_mixture(32, 4, 32);
  Strategy s;
  s[PlanAxis::kData] = 2, s[PlanAxis::kExpert] = 8, s[PlanAxis::kTensor] = 2;
  const Job job = job_of(base, s);
  const Fusion fusion = fusion_of(compile(job).plan, job.supernode);
  ASSERT_EQ(fusion.axes.size(), 3U);
  EXPECT_EQ(fusion.axes[0].stride, 16);
  EXPECT_THAT(fusion.axes[0].location.levels, ElementsAre("supernode"));
  EXPECT_THAT(fusion.axes[1].location.levels, ElementsAre("node"));
  EXPECT_EQ(fusion.axes[2].stride, 1);
  EXPECT_THAT(fusion.axes[2].location.levels, ElementsAre("package"));
  const FusedAxes *both = find(fusion, "dp+ep"), *experts = find(fusion, "ep"),
                  *outside = find(fusion, "dp+tp");
  ASSERT_TRUE(both != nullptr && experts != nullptr && outside != nullptr) << axes_of(fusion);
  EXPECT_EQ(both->devices, 16);
  EXPECT_TRUE(uses(*both, "all-reduce", Category::kGradients));
  EXPECT_TRUE(uses(*outside, "all-reduce", Category::kGradients)) << "of experts, which ep splits";
  EXPECT_THAT(outside->uses.front().largest, HasSubstr("experts"));
  EXPECT_TRUE(
      std::ranges::any_of(experts->uses, [](const FusedUse& u) { return u.collective == "all-to-all-v"; }));
  EXPECT_FALSE(uses(*experts, "all-reduce", Category::kGradients));
}

// Every micro-batch's backward pass makes parts of gradients, which are no activations.
TEST(Fusion, PartialGradientsCountAsGradients) {
  Strategy s;
  s[PlanAxis::kData] = 4, s.zero = 2;
  const Job job = job_of(planned_llama(4, 4, 16), s);
  const Fusion fusion = fusion_of(compile(job).plan, job.supernode);
  const FusedAxes* data = find(fusion, "dp");
  ASSERT_TRUE(data != nullptr) << axes_of(fusion);
  EXPECT_TRUE(uses(*data, "reduce-scatter", Category::kGradients));
  for (const Category other : {Category::kActivations, Category::kData, Category::kCommunication})
    EXPECT_FALSE(uses(*data, "reduce-scatter", other)) << static_cast<int>(other);
}

TEST(NearestFeasible, RemediesSuffice) {
  Job job = planned_llama(2, 4, 8);
  job.supernode.hbm = Bytes(2'000'000'000);
  job.supernode.pool = Bytes(0);
  const Search s = search(job, {.leaders = 1});
  ASSERT_FALSE(s.found());
  const NearestFeasible f = nearest_feasible(job, s, {});
  for (const auto& [remedy, what] :
       {std::pair{f.more_devices, "devices"}, {f.more_hbm, "HBM"}, {f.more_pool, "pool"}}) {
    ASSERT_TRUE(remedy.has_value()) << what;
    Job changed = job;
    changed.supernode = remedy->supernode;
    EXPECT_GT(simulate_strategy(changed, remedy->leader.strategy, {}).simulated, 0) << what;
    EXPECT_LE(remedy->leader.hbm, changed.supernode.hbm) << what;
  }
  EXPECT_GE(f.more_hbm->supernode.hbm, s.least_memory);
}

// The strategy with the least forecast memory may take more than others found by the search.
TEST(NearestFeasible, MemoryIsNearTheLeastThatSuffices) {
  Job job = planned_llama(8, 4, 8);
  job.supernode.hbm = Bytes(400'000'000);
  job.supernode.pool = Bytes(0);
  const Search s = search(job, {.leaders = 1});
  ASSERT_FALSE(s.found());
  const NearestFeasible f = nearest_feasible(job, s, {});
  ASSERT_TRUE(f.more_hbm.has_value());
  const double told = static_cast<double>(f.more_hbm->supernode.hbm.value);
  job.supernode.hbm = Bytes(static_cast<std::int64_t>(told * 0.96));
  const Search less = search(job, {});
  EXPECT_FALSE(less.found()) << told << ": " << describe(less.leaders.front().strategy);
}

// With the job's pool, less HBM suffices than without one.
TEST(NearestFeasible, NeedsLessMemoryWithAPool) {
  Job job = planned_tiny(2, 2, 4, 64, Bytes(16));
  job.supernode.pool = Bytes(512 << 20);
  Job alone = job;
  alone.supernode.pool = Bytes(0);
  const Search s = search(job, {.leaders = 1}), s_alone = search(alone, {.leaders = 1});
  ASSERT_FALSE(s.found() || s_alone.found());
  const NearestFeasible f = nearest_feasible(job, s, {}), f_alone = nearest_feasible(alone, s_alone, {});
  ASSERT_TRUE(f.more_hbm && f_alone.more_hbm);
  EXPECT_LT(f.more_hbm->supernode.hbm, f_alone.more_hbm->supernode.hbm);
  EXPECT_EQ(f.more_hbm->leader.strategy.memory, PlanMemory::kHyperOffload);
  job.supernode = f.more_hbm->supernode;
  EXPECT_GT(simulate_strategy(job, f.more_hbm->leader.strategy, {}).simulated, 0);
}

// Planning transfers takes long, so nothing is compiled that they cannot help.
TEST(NearestFeasible, CompilesNothingThatOffloadingCannotHelp) {
  Job job = planned_llama(8, 32, 8);
  job.supernode.hbm = Bytes(32 << 20);
  const Search s = search(job, {.leaders = 1});
  EXPECT_FALSE(s.found());
  EXPECT_EQ(s.bounded, 0);
  EXPECT_TRUE(s.leaders.empty());
  EXPECT_GT(s.least_memory, job.supernode.hbm);
}

// The fastest candidates are compiled first. If they do not fit, others are found, or some layers recompute
// more. The fastest strategies of this Llama 70B are a little too large.
TEST(NearestFeasible, RefusedCandidatesAreReplaced) {
  Job job = planned_llama(32, 80, 32);
  job.training.batch = 16;
  job.model.hidden = 8192, job.model.heads = 64, job.model.ffn = 28672;
  job.model.vocab = 128256, job.model.sequence = job.model.positions = 8192;
  job.supernode.pool = Bytes(0);
  const Search s = search(job, {.leaders = 1});
  ASSERT_TRUE(s.found());
  EXPECT_TRUE(s.leaders.size() > 1 || s.leaders.front().strategy.extra_recompute_layers > 0)
      << "nothing was refused: the world tells nothing";
  EXPECT_LE(s.leaders.front().hbm, job.supernode.hbm);
}

// This would take minutes if each of the 700,000 numbers below it were examined closely.
TEST(NearestFeasible, AnswersALargePrimeNumberOfDevices) {
  Job job = planned_llama(8, 4, 8);
  job.supernode.devices = 1'000'003;
  const std::vector<std::int32_t> near = devices_that_divide(job, spaces().front());
  ASSERT_FALSE(near.empty());
}

TEST(NearestFeasible, NamesTheDevicesThatDivide) {
  Job job = planned_llama(8, 4, 8);
  job.supernode.devices = 7;
  EXPECT_FALSE(search(job, {.leaders = 1}).found());
  EXPECT_THAT(devices_that_divide(job, spaces().front()), ElementsAre(6, 8));
}

TEST(NearestFeasible, SaysWhatDoesNotDivide) {
  Job job = planned_llama(8, 1, 8);
  job.training.batch = 1;
  job.model.ffn = 5633;
  job.model.sequence = 2047;
  const Search s = search(job, {.leaders = 1});
  EXPECT_FALSE(s.found());
  EXPECT_EQ(s.do_not_divide, s.strategies);
  EXPECT_THAT(what_divides_nothing(job, spaces().front()), HasSubstr("does not divide"));
}

}  // namespace
}  // namespace hyperrun::testing

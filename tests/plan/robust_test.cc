// Robustness of the first plan, compared with separate compilations and simulations, and with made-up steps.
#include "runtime/plan/robust.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

#include "runtime/compile/compile.h"
#include "runtime/cost/groups.h"
#include "runtime/plan/search.h"
#include "runtime/sim/simulate.h"
#include "runtime/spec/profile_figures.h"
#include "tests/plan/worlds.h"

namespace hyperrun::testing {
namespace {

Job two_nodes() { return planned_llama(32, 4, 64); }

std::vector<SimulatedCandidate> two_leaders(const Job& job) {
  std::vector<SimulatedCandidate> list;
  for (const std::int32_t tensor : {2, 4}) {
    Strategy s;
    s[PlanAxis::kTensor] = tensor, s[PlanAxis::kData] = 32 / tensor;
    list.push_back(simulate_strategy(job, s, {}));
  }
  std::ranges::sort(list, {}, &SimulatedCandidate::simulated);
  return list;
}

std::size_t place_of(const Robustness& r, const std::string& circumstance) {
  const auto at = std::ranges::find(r.circumstances, circumstance);
  EXPECT_NE(at, r.circumstances.end()) << circumstance;
  return static_cast<std::size_t>(at - r.circumstances.begin());
}

// Step of the strategy on a changed machine, as a job of its own, by the detailed simulator.
double step_of(Job job, const Strategy& strategy, const std::function<void(Machine&)>& change,
               const SimOptions& options = {}) {
  const Plan plan = compile(job_of(job, strategy)).plan;
  change(*job.supernode.machine);
  const Topology topology = hosts_of(*job.supernode.machine, job.supernode.devices);
  return static_cast<double>(simulate(plan, "train", job.supernode, topology, options).makespan.value);
}

TEST(Robust, StepsAreThoseOfTheOtherMachines) {
  const Job job = two_nodes();
  const std::vector<SimulatedCandidate> leaders = two_leaders(job);
  const Robustness r = robustness(job, leaders, {.figures = figures_of(machine_of(job.supernode))});
  ASSERT_EQ(r.plans.size(), 2u);
  const auto nothing = [](Machine&) {};
  const auto low = [](Machine& m) { m.attention.ceiling.value = m.attention.ceiling.low; };
  for (std::size_t p = 0; p < 2; ++p) {
    const Contender& c = r.plans[p];
    EXPECT_EQ(c.steps.size(), r.circumstances.size());
    EXPECT_EQ(c.steps.front(), leaders[p].simulated);
    EXPECT_EQ(c.steps[place_of(r, "device.attention.ceiling is 0.4")], step_of(job, c.strategy, low));
    SimOptions slow;
    slow.slow = {{0, 1.1}, {16, 1.1}};
    EXPECT_EQ(c.steps[place_of(r, "the busiest device of each node computes 10 % slower")],
              step_of(job, c.strategy, nothing, slow));
    EXPECT_GE(c.range.slowest, c.range.step);
    EXPECT_LE(c.range.fastest, c.range.step);
  }
}

// The machine with each guess at the end that makes the first plan's step longer, or shorter.
Machine at_ends_of(const StepRange& range, Machine machine, bool worse) {
  for (const FigurePath& at : figures_of(machine)) {
    const auto g = std::ranges::find(range.guesses, at.path, &GuessEffect::path);
    if (g == range.guesses.end()) continue;
    const Nanos extreme =
        worse ? std::max({g->at_low, g->at_high, range.step}) : std::min({g->at_low, g->at_high, range.step});
    if (extreme == range.step) continue;
    at.in(machine).value = extreme == g->at_low ? g->low : g->high;
  }
  return machine;
}

TEST(Robust, StepsAtAllGuessesEndsAreThoseOfThatMachine) {
  const Job job = two_nodes();
  const Robustness r = robustness(job, two_leaders(job), {.figures = figures_of(machine_of(job.supernode))});
  const StepRange& first = r.plans.front().range;
  for (const bool worse : {true, false}) {
    const Machine there = at_ends_of(first, machine_of(job.supernode), worse);
    const std::size_t place =
        place_of(r, worse ? "all guesses are at their worse ends" : "all guesses are at their better ends");
    for (const Contender& c : r.plans)
      EXPECT_EQ(c.steps[place], step_of(job, c.strategy, [&](Machine& m) { m = there; })) << worse;
  }
  EXPECT_GT(first.slowest, first.fastest);
}

TEST(Robust, TheSlowDeviceIsTheOneThatComputesLongest) {
  const Job job = planned_llama(4, 4, 8);
  Strategy s;
  s[PlanAxis::kPipeline] = 4;
  const std::vector<SimulatedCandidate> leaders{simulate_strategy(job, s, {})};
  const Robustness r = robustness(job, leaders, {.figures = figures_of(machine_of(job.supernode))});
  const auto nothing = [](Machine&) {};
  std::vector<double> slower;
  for (int d = 0; d < 4; ++d) {
    SimOptions slow;
    slow.slow = {{d, 1.1}};
    slower.push_back(step_of(job, s, nothing, slow));
  }
  EXPECT_EQ(r.plans[0].steps[place_of(r, "the busiest device of each node computes 10 % slower")], slower[3])
      << "the stage with the head";
  EXPECT_GT(slower[3], slower[0]);
}

TEST(Robust, PlanDoesNotFitBesideALargerReserve) {
  const Job job = two_nodes();
  std::vector<SimulatedCandidate> leaders = two_leaders(job);
  leaders[1].hbm = Bytes(59 * kGiB.value);  // of 64 GiB, of which 4 or 6 are reserved
  const Robustness r = robustness(job, leaders, {.figures = figures_of(machine_of(job.supernode))});
  EXPECT_EQ(r.plans[1].steps[place_of(r, "device.reserve is 6 GiB")], kDoesNotFit);
  EXPECT_EQ(r.plans[0].steps[place_of(r, "device.reserve is 6 GiB")], leaders[0].simulated);
  EXPECT_EQ(r.worst_loss(1), kDoesNotFit);
  EXPECT_EQ(r.plans[1].steps[place_of(r, "all guesses are at their worse ends")], kDoesNotFit);
  EXPECT_FALSE(r.plans[1].range.fits_slowest);
  EXPECT_THAT(r.without_room(), ::testing::IsEmpty()) << "the other fits everywhere";
}

TEST(Robust, IgnoresCircumstancesInWhichNothingFits) {
  const Job job = two_nodes();
  std::vector<SimulatedCandidate> leaders = two_leaders(job);
  for (SimulatedCandidate& l : leaders) l.hbm = Bytes(59 * kGiB.value);
  const Robustness r = robustness(job, leaders, {.figures = figures_of(machine_of(job.supernode))});
  EXPECT_THAT(r.without_room(),
              ::testing::UnorderedElementsAre(place_of(r, "device.reserve is 6 GiB"),
                                              place_of(r, "all guesses are at their worse ends")));
  EXPECT_FALSE(r.fits_everywhere(0));
  EXPECT_EQ(r.least_hbm, 58.0 * static_cast<double>(kGiB.value));
}

TEST(Robust, PlanFitsOnlyALargeEnoughPool) {
  const Job job = two_nodes();
  std::vector<SimulatedCandidate> leaders = two_leaders(job);
  const Machine machine = machine_of(job.supernode);
  const auto sharing = static_cast<double>(machine.devices_of_a_host());  // more than the job has
  leaders[0].pool = Bytes(static_cast<std::int64_t>((machine.pool.capacity.low + 1) * sharing));
  const Robustness r = robustness(job, leaders, {.figures = figures_of(machine_of(job.supernode))});
  const auto& guesses = r.plans[0].range.guesses;
  const auto g = std::ranges::find(guesses, "device.pool.capacity", &GuessEffect::name);
  ASSERT_NE(g, guesses.end());
  EXPECT_FALSE(g->fits_low);
  EXPECT_TRUE(g->fits_high);
  EXPECT_EQ(r.plans[0].steps[place_of(r, g->name + " is " + g->low_words)], kDoesNotFit);
  EXPECT_EQ(r.plans[1].steps[place_of(r, g->name + " is " + g->low_words)], leaders[1].simulated);
}

TEST(Robust, IncludesTheFastestThatFitsEverywhere) {
  const Job job = two_nodes();
  std::vector<SimulatedCandidate> leaders = two_leaders(job);
  const RobustOptions one{.figures = figures_of(machine_of(job.supernode)), .plans = 1};
  EXPECT_EQ(robustness(job, leaders, one).plans.size(), 1u);
  leaders[0].hbm = Bytes(59 * kGiB.value);
  const Robustness r = robustness(job, leaders, one);
  ASSERT_EQ(r.plans.size(), 2u);
  EXPECT_EQ(r.steadiest(), 1u);
}

TEST(Robust, TellsANearlyAsFastSimplerPlan) {
  const Job job = two_nodes();
  std::vector<SimulatedCandidate> leaders = two_leaders(job);
  leaders[1] = leaders[0];
  leaders[0].strategy.memory = PlanMemory::kHyperOffload;
  const RobustOptions options{.figures = figures_of(machine_of(job.supernode))};
  const Robustness r = robustness(job, leaders, options);
  ASSERT_TRUE(r.simpler);
  EXPECT_EQ(r.simpler->plan, 1u);
  EXPECT_EQ(r.simpler->reason, "it moves no tensors beyond HBM");
  std::ranges::swap(leaders[0], leaders[1]);
  EXPECT_FALSE(robustness(job, leaders, options).simpler) << "the first is the simpler one";
}

TEST(Robust, SteadiestHasTheLeastWorstLoss) {
  Robustness r;
  r.circumstances = {"as it is", "a slow pool"};
  r.plans = {{{}, {}, {100, 190}}, {{}, {}, {103, 120}}, {{}, {}, {110, 119}}};
  EXPECT_EQ(r.fastest_in(0), 0u);
  EXPECT_EQ(r.fastest_in(1), 2u);
  EXPECT_FALSE(r.is_always_first(0));
  EXPECT_NEAR(r.worst_loss(0), 190.0 / 119 - 1, 1e-12);
  EXPECT_EQ(r.steadiest(), 1u) << "3 % behind in one, 0.8 % in the other";
  r.plans[0].steps[1] = 120;
  EXPECT_TRUE(r.is_always_first(0)) << "0.8 % are not told apart";
}

TEST(Robust, SimplerPlanHasFewerMechanisms) {
  Strategy plain, moving;
  plain[PlanAxis::kData] = moving[PlanAxis::kData] = 8;
  moving.memory = PlanMemory::kHyperOffload;
  EXPECT_EQ(simpler_because(plain, moving), "it moves no tensors beyond HBM");
  EXPECT_EQ(simpler_because(moving, plain), "");
  EXPECT_EQ(simpler_because(plain, plain), "");
  Strategy crossed = plain;
  crossed[PlanAxis::kData] = 4, crossed[PlanAxis::kTensor] = 2;
  EXPECT_EQ(simpler_because(plain, crossed), "it has 1 axis instead of 2");
  EXPECT_EQ(simpler_because(crossed, moving), "it moves no tensors beyond HBM")
      << "the first difference decides";
  Strategy remade = plain;
  remade.extra_recompute_layers = 1;
  EXPECT_EQ(simpler_because(plain, remade), "it recomputes less");
}

TEST(SimulatedCandidate, PartsAreMeansAndAddUpToTheStep) {
  const Job job = planned_llama(4, 4, 8);
  Strategy s;
  s[PlanAxis::kPipeline] = 4;
  const SimulatedCandidate l = simulate_strategy(job, s, {});
  const auto sum = [](const Breakdown& b) {
    return static_cast<double>((b.compute + b.optimizer + b.communication + b.transfer + b.bubble).value);
  };
  EXPECT_NEAR(sum(l.parts), l.simulated, 5) << "five parts, each rounded";
  EXPECT_EQ(sum(l.busiest), l.simulated);
  EXPECT_GT(l.busiest.compute, l.parts.compute) << "the stage with the head computes longest";
  const Plan plan = compile(job_of(job, s)).plan;
  const SimResult r = simulate(plan, "train", job.supernode, hosts_of(machine_of(job.supernode), 4));
  double bubbles = 0;
  for (int d = 0; d < 4; ++d) bubbles += static_cast<double>(r.breakdown(d).bubble.value);
  EXPECT_NEAR(static_cast<double>(l.parts.bubble.value), bubbles / 4, 0.5);
}

}  // namespace
}  // namespace hyperrun::testing

// The search beside all there is: in small worlds every strategy is simulated.
#include "runtime/plan/search.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <string>
#include <vector>

#include "runtime/compile/compile.h"
#include "runtime/plan/balance.h"
#include "runtime/plan/likeness.h"
#include "runtime/plan/order_bounds.h"
#include "runtime/plan/pareto.h"
#include "runtime/plan/piece_table.h"
#include "runtime/plan/transfers.h"
#include "runtime/spec/job_reader.h"
#include "tests/plan/worlds.h"

namespace hyperrun::testing {
namespace {

enum class World : std::uint8_t { kLayers, kExperts, kFewHeads, kBeyondHbm, kSlowBus, kUnevenUnits };

// Units of so many devices, and between them next to nothing.
void slow_down_beyond(int devices, Job& job) {
  Machine machine = machine_of(job.supernode);
  machine.levels = {machine.levels.front(), machine.levels.back()};
  machine.levels.front().devices = devices;
  machine.levels.back().bandwidth.value /= 5;
  job.supernode.machine = std::move(machine);
}

class SmallWorld : public ::testing::TestWithParam<World> {
 protected:
  static Job job() {
    if (GetParam() == World::kExperts) return planned_mixture(4, 3, 4);
    if (GetParam() == World::kLayers) return planned_llama(4, 4, 4);
    Job job = planned_llama(4, 2, 4);
    if (GetParam() == World::kUnevenUnits) return slow_down_beyond(3, job), job;
    if (GetParam() == World::kSlowBus) {
      job = planned_mixture(4, 2, 4);
      return slow_down_beyond(2, job), job;
    }
    if (GetParam() == World::kBeyondHbm) {
      job.supernode.hbm = Bytes(1'200'000'000);
      job.supernode.pool = Bytes(64'000'000'000);
      return job;
    }
    // Of keys fewer than there are devices: attention is split differently by two devices and by four.
    job.model.heads = 4, job.model.kv_heads = 2;
    job.model.head_dim = 512;
    return job;
  }
};

struct Exhausted {
  double best = std::numeric_limits<double>::infinity();
  std::int64_t strategies = 0, uneven = 0, moved = 0, simulated = 0;
  std::vector<std::pair<Bytes, double>> takes;  // HBM, and ns of a step, of each that was simulated

  double best_within(Bytes hbm) const {
    double least = std::numeric_limits<double>::infinity();
    for (const auto& [bytes, nanos] : takes)
      if (bytes <= hbm) least = std::min(least, nanos);
    return least;
  }
};

LayersPieces least_pieces(const Strategy& strategy, PieceTable& table) {
  LayersPieces least{table.find_least(strategy), nullptr};
  if (strategy.deeper == 0) return least;
  Strategy more = strategy;
  more.recompute = *next_after(strategy.recompute);
  least.deeper = table.find_least(more);
  return least;
}

// A strategy in every order of its axes; its bounds hold.
void exhaust(const Job& job, const Strategy& strategy, PieceTable& table, Exhausted& all) {
  ++all.strategies;
  const LayersPieces least = least_pieces(strategy, table);
  OrderBounds bounds(job, table);
  Strategy none = strategy;
  none.deeper = 0;
  const double of_more = bounds.of(none).of_more;
  const std::int32_t m = micro_batches(strategy, job.training.batch);
  for (const Strategy& s : orders_of(strategy)) {
    Leader leader = try_strategy(job, s, {});
    if (!leader.fits && job.supernode.pool.value > 0 && s.deeper == 0) {
      Strategy moves = s;
      moves.memory = PlanMemory::kHyperOffload;
      leader = try_strategy(job, moves, {});
      all.moved += leader.simulated > 0 ? 1 : 0;
    }
    if (leader.simulated == 0) continue;
    ++all.simulated;
    all.best = std::min(all.best, leader.simulated);
    all.takes.emplace_back(leader.hbm, leader.simulated);
    ASSERT_NE(least.pieces, nullptr) << words(s) << " is left out: " << table.why_not(s);
    const Forecast f = least_form(s, job.model, m, least);
    EXPECT_LE(f.bound, leader.simulated) << words(s);
    EXPECT_LE(bounds.as_it_is(s), leader.simulated) << words(s);
    EXPECT_LE(bounds.of(strategy).in_any, leader.simulated) << words(s) << ", of all orders";
    EXPECT_LE(of_more, leader.simulated) << words(s) << ", of any number of layers that recompute more";
    EXPECT_LE(least_transfers(f, table.machine().pool, job.supernode.hbm), leader.simulated) << words(s);
    EXPECT_LE(f.least_here, leader.hbm.value) << words(s);
    if (leader.strategy.memory == PlanMemory::kNone) {
      EXPECT_LE(f.least_memory, leader.hbm.value) << words(s);
    }
    if (s.deeper > 0) continue;
    const Pieces* pieces = table.find(s);
    ASSERT_NE(pieces, nullptr) << words(s);
    const Forecast whole = closed_form(s, job.model, m, {pieces, nullptr}, 0);
    EXPECT_LE(with_transfers(whole, Tier::kPool, table.machine(), job.supernode.hbm).bound, leader.simulated)
        << words(s);
  }
}

// Every strategy, simulated.
Exhausted exhaust(const Job& job) {
  Exhausted all;
  PieceTable table(job);
  each_strategy(job, spaces().front(), [&](const Strategy& strategy) {
    exhaust(job, strategy, table, all);
    const Pieces* pieces = table.find_least(strategy);
    if (pieces == nullptr) return;
    const std::optional<Strategy> uneven = balanced(strategy, job.model, *pieces);
    if (!uneven) return;
    exhaust(job, *uneven, table, all);
    ++all.uneven;
  });
  return all;
}

void expect_certified(const Job& job, const Search& few, const Exhausted& all) {
  const double found = few.leaders.front().simulated;
  EXPECT_GE(found, all.best);
  EXPECT_LE(found, all.best * (1 + few.gap()) * (1 + 1e-9)) << "the certificate does not hold";
  // Whoever simulates all that may be better has the best.
  const Search many = search(job, {.leaders = 100'000});
  EXPECT_EQ(many.leaders.front().simulated, all.best);
  EXPECT_LE(many.gap(), few.gap());
  EXPECT_TRUE(many.bounds_hold);
}

TEST_P(SmallWorld, HasNothingBetterThanTheCertificateSays) {
  const Job job = SmallWorld::job();
  const Exhausted all = exhaust(job);
  ASSERT_GT(all.simulated, 50);
  if (GetParam() == World::kLayers) {
    EXPECT_GT(all.uneven, 0);
  }
  if (GetParam() == World::kBeyondHbm) {
    EXPECT_GT(all.moved, 50);
  }
  const Search few = search(job, {.leaders = 4});
  ASSERT_TRUE(few.found());
  EXPECT_EQ(few.strategies, all.strategies);
  expect_certified(job, few, all);
  // Of transfers a forecast knows how much there is, but not when.
  const double near = GetParam() == World::kBeyondHbm ? 1.1 : 1.03;
  EXPECT_LE(few.leaders.front().simulated, all.best * near) << "the leaders are not those that lead";
}

// What a stage recomputes of experts needs nothing of the next one: it is done while that is waited for. And
// of two micro-batches zero bubble sums nothing up while the second is kept.
TEST(Search, CertifiesStagesThatRecomputeExperts) {
  Job job = planned_mixture(4, 4, 4);
  job.training.batch = 2, job.model.experts.dense_layers = 0;
  const Exhausted all = exhaust(job);
  ASSERT_GT(all.simulated, 50);
  expect_certified(job, search(job, {.leaders = 4}), all);
}

// Where no update waits for the norm of all gradients, a plan of transfers brings them forward.
TEST(Search, CertifiesUpdatesThatTransfersBringForward) {
  Job job = planned_tiny(2, 2, 4, 64, Bytes(std::int64_t{1} << 30));
  job.training.clip_norm = 0;
  job.supernode.hbm = Bytes(search(job, {.leaders = 1}).leaders.front().hbm.value * 6 / 10);
  const Exhausted all = exhaust(job);
  ASSERT_GT(all.moved, 20);
  expect_certified(job, search(job, {.leaders = 4}), all);
}

// The width divides over neighbours, but not over those that are far apart as well.
TEST(Search, CertifiesWhatIsNotSplitAlongASlowAxis) {
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
  }
  return "";
}

INSTANTIATE_TEST_SUITE_P(Of, SmallWorld,
                         ::testing::Values(World::kLayers, World::kExperts, World::kFewHeads,
                                           World::kBeyondHbm, World::kSlowBus, World::kUnevenUnits),
                         name_of);

// Of every strategy every number of layers of a device that recompute more, simulated.
Exhausted exhaust_deeper(const Job& job) {
  Exhausted all;
  PieceTable table(job);
  each_strategy(job, spaces().front(), [&](const Strategy& even) {
    Strategy s = even;
    const std::int32_t most = next_after(s.recompute) ? most_layers(s, job.model.layers) : 1;
    for (s.deeper = 0; s.deeper < most; ++s.deeper) exhaust(job, s, table, all);
  });
  return all;
}

TEST(Search, RecomputesInSomeLayersWhatDoesNotFitOtherwise) {
  Job job = planned_llama(2, 5, 4);
  job.supernode.pool = Bytes(0);
  const Search fastest = search(job, {.leaders = 4});
  job.supernode.hbm = Bytes(fastest.leaders.front().hbm.value * 95 / 100);
  const Exhausted all = exhaust_deeper(job);
  ASSERT_GT(all.simulated, 50);
  const Search few = search(job, {.leaders = 8});
  ASSERT_TRUE(few.found());
  const Leader& best = few.leaders.front();
  EXPECT_GT(best.strategy.deeper, 0) << words(best.strategy);
  EXPECT_LE(best.simulated, all.best * 1.01);
  EXPECT_LE(best.simulated, all.best * (1 + few.gap()) * (1 + 1e-9)) << "the certificate does not hold";
  EXPECT_TRUE(few.bounds_hold);
}

void expect_certified_deeper(const Job& job) {
  const Exhausted all = exhaust_deeper(job);
  ASSERT_GT(all.simulated, 20);
  for (const std::int32_t leaders : {1, 8, 100'000}) {
    const Search s = search(job, {.leaders = leaders});
    ASSERT_TRUE(s.found());
    EXPECT_TRUE(s.bounds_hold);
    EXPECT_LE(s.leaders.front().simulated, all.best * (1 + s.gap()) * (1 + 1e-9))
        << "the certificate does not hold: " << words(s.leaders.front().strategy);
  }
}

// With HBM that presses, of one kind of layers and of two.
TEST(Search, CertifiesWhatRecomputesInSomeLayers) {
  for (Job job : {planned_llama(2, 4, 4), planned_mixture(2, 4, 4)}) {
    job.supernode.pool = Bytes(0);
    const Bytes all_of_it = search(job, {.leaders = 1}).leaders.front().hbm;
    for (const int percent : {97, 92, 86}) {
      job.supernode.hbm = Bytes(all_of_it.value / 100 * percent);
      expect_certified_deeper(job);
    }
  }
}

// By its forecast a strategy may fit with no number of layers that recompute more, as gaps between small
// tensors are taken too large, and with transfers: it may be placed all the same.
TEST(Search, CertifiesWhatRecomputesInSomeLayersBesideAPool) {
  for (const Job& job :
       {planned_tiny(1, 4, 4, 64, Bytes(18'648 * 1024)), planned_tiny(2, 2, 1, 512, Bytes(6'834 * 1024)),
        planned_tiny(2, 3, 4, 256, Bytes(12'000 * 1024))}) {
    expect_certified_deeper(job);
  }
}

// What is simulated under a large budget may fit into less with layers that recompute more.
TEST(Pareto, CertifiesEachPointOfTheFront) {
  const Job job = planned_tiny(1, 3, 2, 64, Bytes(64 << 20));
  const Exhausted all = exhaust_deeper(job);
  const Search s = search(job, {.leaders = 8});
  const Front front = pareto_front(job, s, {.leaders = 8, .devices = {1}});
  ASSERT_GT(front.points.size(), 2U);
  for (const FrontPoint& p : front.points)
    EXPECT_LE(p.leader.simulated, all.best_within(p.leader.hbm) * (1 + p.gap) * (1 + 1e-9))
        << words(p.leader.strategy);
}

// The update of their bias reads what the forward pass has counted: nothing is computed again for it.
TEST(Search, PlansExpertsThatAreBalancedByABias) {
  Job job = planned_mixture(4, 3, 4);
  job.model.experts.bias_rate = 1e-3;
  const Search s = search(job, {.leaders = 1});
  ASSERT_TRUE(s.found());
  Strategy full = s.leaders.front().strategy;
  full.recompute = PlanRecompute::kFull, full.deeper = 0;
  const Compiled compiled = compile(job_of(job, full));
  for (const Program& p : compiled.plan.roles.front().programs)
    for (const std::string& origin : p.origins)
      EXPECT_FALSE(origin.find("load.sum.again") != origin.npos) << origin;
}

// A budget that the plain strategies exceed.
TEST(Search, LeavesOutWhatDoesNotFit) {
  Job job = planned_llama(4, 4, 8);
  job.supernode.hbm = Bytes(3'000'000'000);
  job.supernode.pool = Bytes(0);
  const Search s = search(job, {.leaders = 4});
  ASSERT_TRUE(s.found());
  EXPECT_GT(s.do_not_fit, 0);
  EXPECT_LE(s.leaders.front().hbm, job.supernode.hbm);
}

// Its forecast, or whoever asks, was off by more than a few layers.
TEST(Search, TakesAsManyLayersMoreAsPlacingAsksFor) {
  Job job = planned_llama(2, 24, 8);
  job.supernode.pool = Bytes(0);
  Strategy s;
  s[PlanAxis::kData] = 2, s.samples = 4;
  ASSERT_TRUE(try_strategy(job, s, {}).fits);
  Strategy some = s;
  some.deeper = 12;
  job.supernode.hbm = try_strategy(job, some, {}).hbm;
  ASSERT_FALSE(try_strategy(job, s, {}).fits);
  const Leader near = try_near(job, spaces().front(), s, {});
  ASSERT_GT(near.simulated, 0) << near.why_not;
  EXPECT_LE(near.strategy.deeper, 13) << "more than it takes";
  EXPECT_GT(near.hbm_as_asked, job.supernode.hbm);
}

// Of the constraints' space each that has been simulated is found where HBM is what it takes.
void expect_each_is_found(Job job, const std::vector<const char*>& constraints) {
  job.supernode.pool = Bytes(0);
  Space space = spaces().front();
  for (const char* text : constraints) space.only.push_back(constraint_of(text));
  const Search roomy = search(job, {.space = &space, .leaders = 100});
  ASSERT_GT(roomy.leaders.size(), 2U);
  for (const Leader& l : roomy.leaders) {
    if (l.simulated == 0) continue;
    job.supernode.hbm = l.hbm;
    const Search s = search(job, {.space = &space, .leaders = 100});
    EXPECT_TRUE(s.found()) << words(l.strategy) << " takes " << to_string(l.hbm);
    // Whatever has led to it, the certificate is withdrawn where its bound is no bound.
    for (const Leader& found : s.leaders) EXPECT_GT(found.forecast.bound, 0) << words(found.strategy);
  }
}

// By their forecasts none fits, as gaps between small tensors are taken too large.
TEST(Search, TriesWhatIsUnlikelyToFitWhereNothingElseDoes) {
  const Bytes enough(std::int64_t{1} << 30);
  expect_each_is_found(planned_tiny(2, 4, 4, 512, enough),
                       {"recompute=selective to full", "pp=2", "samples=2"});
  expect_each_is_found(planned_tiny(4, 4, 4, 512, enough),
                       {"recompute=selective to full", "pp=2", "cp=2", "samples=2", "innermost=pp"});
}

// 65,536 micro-batches of one sequence through 512 layers, or some thousands of more: no leader is begun.
TEST(Search, SaysWhatIsTooLargeToBeSimulated) {
  Job job = planned_llama(16, 512, 1 << 20);
  job.supernode.pool = Bytes(0);
  const Search s = search(job, {.leaders = 2});
  EXPECT_FALSE(s.found());
  ASSERT_TRUE(s.too_large);
  EXPECT_LE(s.too_large->forecast.memory, job.supernode.hbm.value);
  const std::int64_t micro_batches =
      (1 << 20) / (s.too_large->strategy.replicas() * s.too_large->strategy.samples);
  EXPECT_GT(512 * micro_batches, kMostPasses);
  for (const Leader& l : s.leaders) EXPECT_TRUE(l.fits) << words(l.strategy);
}

// It fits as nothing else but with all layers recomputed: what was asked for is no contradiction.
TEST(Search, NamesTheModestOfWhatRecomputesInSomeLayers) {
  Job job = planned_llama(4, 4, 8);
  job.supernode.hbm = Bytes(1'200'000'000);
  job.supernode.pool = Bytes(0);
  Space space = spaces().front();
  for (const char* text : {"recompute=none to selective", "tp=2", "zero=0"})
    space.only.push_back(constraint_of(text));
  const Search s = search(job, {.space = &space, .leaders = 1});
  EXPECT_FALSE(s.found());
  ASSERT_FALSE(s.modest.empty());
  EXPECT_GT(s.modest.front().strategy.deeper, 0);
  EXPECT_EQ(s.modest.front().strategy.recompute, PlanRecompute::kNone);
}

// Whoever asks needs not compile it once more.
TEST(Search, SaysOfALeaderWhatItsAxesMove) {
  const Job job = planned_llama(4, 4, 8);
  const Search s = search(job, {.leaders = 1});
  ASSERT_TRUE(s.found());
  const Leader& best = s.leaders.front();
  const Fusion again = fusion_of(compile(job_of(job, best.strategy)).plan, job.supernode);
  ASSERT_EQ(best.fusion.groups.size(), again.groups.size());
  ASSERT_FALSE(again.groups.empty());
  for (std::size_t g = 0; g < again.groups.size(); ++g) {
    EXPECT_EQ(best.fusion.groups[g].axes, again.groups[g].axes);
    EXPECT_EQ(best.fusion.groups[g].uses.size(), again.groups[g].uses.size());
  }
}

// What is moved takes more of the pool than HBM lacks. From the first that are refused for it the search
// learns how much, and plans no transfers of those to which the same would happen.
TEST(Search, LearnsHowMuchOfThePoolIsTaken) {
  Job job = planned_llama(8, 12, 8);
  job.supernode.hbm = Bytes(1'200'000'000);
  job.supernode.pool = Bytes(64'000'000'000);
  const Search enough = search(job, {.leaders = 1});
  ASSERT_TRUE(enough.found());
  job.supernode.pool = Bytes(enough.leaders.front().pool.value * 8 / 10);
  const Search s = search(job, {.leaders = 1});  // one after the other, so in this order
  const auto share = static_cast<double>(job.supernode.pool.value / job.supernode.devices);
  Corrections beyond;
  for (const Leader& l : s.leaders) {
    ASSERT_EQ(l.strategy.memory, PlanMemory::kHyperOffload) << words(l.strategy);
    const auto lacks = static_cast<double>(l.forecast.mean - job.supernode.hbm.value);
    EXPECT_LE(lacks * beyond.factor(l.strategy), share) << words(l.strategy);
    beyond.learn(l.strategy, lacks, static_cast<double>(l.pool.value / job.supernode.devices));
  }
  EXPECT_GT(std::ranges::count(s.leaders, false, &Leader::fits), 1);
}

// None has transfers then, and what these would have brought is no less than what is certified.
TEST(Search, LeavesTransfersOfLongStepsWhereOthersFit) {
  Job job = planned_tiny(2, 2, 4, 64, Bytes(std::int64_t{1} << 30));
  job.supernode.hbm = Bytes(search(job, {.leaders = 1}).leaders.front().hbm.value * 8 / 10);
  const Search known = search(job, {.leaders = 8}), s = search(job, {.leaders = 8, .long_step = 0});
  ASSERT_TRUE(known.found() && s.found());
  const auto moves = [](const Leader& l) {
    return l.strategy.memory != PlanMemory::kNone && l.simulated > 0;
  };
  EXPECT_TRUE(std::ranges::any_of(known.leaders, moves));
  EXPECT_TRUE(std::ranges::none_of(s.leaders, moves));
  EXPECT_GE(known.leaders.front().simulated, s.least_bound);
}

// Refused at first, the most promising is planned in full when nothing has been found.
TEST(Search, PlansTransfersOfLongStepsWhereNothingElseFits) {
  const Job job = planned_tiny(2, 4, 4, 64, Bytes(4'000 * 1024));
  Space moved = spaces().front();
  moved.only = {constraint_of("memory=hyperoffload"), constraint_of("recompute=none")};
  const SearchOptions one{.space = &moved, .leaders = 1, .unlikely = false};
  SearchOptions leaves = one;
  leaves.long_step = 0;
  const Search known = search(job, one), s = search(job, leaves);
  ASSERT_TRUE(known.found() && s.found());
  ASSERT_EQ(known.leaders.front().strategy.memory, PlanMemory::kHyperOffload);
  EXPECT_EQ(words(s.leaders.front().strategy), words(known.leaders.front().strategy));
  EXPECT_EQ(s.leaders.front().simulated, known.leaders.front().simulated);
}

TEST(Search, NamesThoseThatNeedLeastWhereNothingFits) {
  Job job = planned_llama(4, 4, 8);
  job.supernode.hbm = Bytes(100'000'000);
  job.supernode.pool = Bytes(0);
  const Search s = search(job, {.leaders = 4});
  EXPECT_FALSE(s.found());
  ASSERT_FALSE(s.modest.empty());
  EXPECT_TRUE(std::ranges::is_sorted(s.modest, {}, &Needs::nearly));
  for (const Needs& needs : s.modest) EXPECT_LE(s.least_memory, needs.least);
}

// Jobs that fit hardly, and by some forecast do not: what makes them fit is found without being asked for.
struct Hardly {
  const char* name;
  const char* job;
  std::vector<std::string> asked;  // of a search for that alone
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
      << words(s.leaders.front().strategy) << " is found, and not " << words(alone.leaders.front().strategy);
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

// Forecasts of what a restricted space has may be too long, and of the others too short: "deepspeed" has a
// step that is 4 % shorter than what is best by those of all.
TEST(Search, FindsWhatRestrictedSpacesDo) {
  const Job job = parse_job(R"(supernode { devices: 8 profile: "matrix384" hbm: "4 GB" }
                               model { layers: 8 hidden: 1024 heads: 16 kv_heads: 4 vocab: 32768 sequence: 8192
                                 experts { count: 8 choices: 2 ffn: 2048 } }
                               data { corpus: "none.txt" }
                               training { steps: 1 batch: 32 lr: 1e-4 precision: "bfloat16" })",
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

// By their forecasts, less than half of what they take, all leaders of the first have ZeRO 3; ZeRO 1 is a
// quarter faster. Those of the second move nothing, as transfers are forecast to take three times as long.
TEST(Search, TriesTransfersOfEachKind) {
  for (const char* text : {R"(supernode { hbm: "140 MB" devices: 4 profile: "h100" }
                              model { layers: 2 hidden: 512 heads: 4 kv_heads: 1 vocab: 32000 sequence: 512 }
                              data { corpus: "none.txt" }
                              training { steps: 1 batch: 8 lr: 1e-4 precision: "bfloat16" })",
                           R"(supernode { devices: 2 hbm: "5 MiB" pool: "200 MiB" }
                              model { layers: 4 hidden: 64 heads: 2 vocab: 512 sequence: 128 }
                              data { corpus: "none.txt" }
                              training { steps: 1 batch: 4 lr: 1e-3 })"}) {
    const Job job = parse_job(text, "kinds", JobUse::kToBePlanned).job;
    const Search all = search(job, {});
    ASSERT_TRUE(all.found());
    for (const char* only : {"zero=1", "zero=2", "zero=3", "recompute=none", "memory=hyperoffload"}) {
      Space with = spaces().front();
      with.only = {constraint_of(only)};
      const Search s = search(job, {.space = &with});
      ASSERT_TRUE(s.found()) << only;
      EXPECT_LE(all.leaders.front().simulated, s.leaders.front().simulated) << only;
    }
  }
}

// They are chosen in turns of new families and of any: what four find, eight find as well.
TEST(Search, MoreLeadersBeginAsFewerDo) {
  const Job job = parse_job(R"(supernode { devices: 24 profile: "matrix384" }
                               model { layers: 8 hidden: 1024 heads: 16 kv_heads: 8 ffn: 4096 vocab: 32000
                                 sequence: 1024 }
                               data { corpus: "none.txt" }
                               training { steps: 1 batch: 24 lr: 1e-4 precision: "bfloat16" })",
                            "turns", JobUse::kToBePlanned)
                      .job;
  const Search few = search(job, {.leaders = 4}), many = search(job, {.leaders = 8});
  ASSERT_TRUE(few.found() && many.found());
  EXPECT_LE(many.leaders.front().simulated, few.leaders.front().simulated);
}

TEST(Leaders, WhatMovesNothingHasNoPolicy) {
  const Job job = planned_llama(2, 2, 4);
  Strategy s;
  s[PlanAxis::kData] = 2, s.memory = PlanMemory::kHyperOffload;
  const Leader leader = try_near(job, spaces().front(), s, {});
  ASSERT_GT(leader.simulated, 0);
  EXPECT_EQ(leader.strategy.memory, PlanMemory::kNone);
  Space asked = spaces().front();
  asked.only = {constraint_of("memory=hyperoffload")};
  EXPECT_EQ(try_near(job, asked, s, {}).strategy.memory, PlanMemory::kHyperOffload);
}

}  // namespace
}  // namespace hyperrun::testing

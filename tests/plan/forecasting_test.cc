// The second round of a search on several threads.
#include "runtime/plan/forecasting.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <limits>
#include <string>
#include <thread>
#include <vector>

#include "runtime/plan/balance.h"
#include "runtime/plan/bounding.h"
#include "runtime/plan/leader.h"
#include "runtime/plan/least_pieces.h"
#include "runtime/plan/order_bounds.h"
#include "runtime/plan/piece_table.h"
#include "runtime/plan/search.h"
#include "runtime/spec/job_reader.h"
#include "tests/plan/worlds.h"

namespace hyperrun::testing {
namespace {

std::vector<Bounded> bounded(const Job& job) {
  return bound_all(job, spaces().front(), shapes_of(job, spaces().front()), [](std::int64_t) {}).lowest();
}

double all_wanted(const Strategy&) { return std::numeric_limits<double>::infinity(); }

TEST(Forecasting, HandsOutEachOnceAsAnotherForecastsItAlone) {
  const Job job = planned_llama(32, 8, 64);
  std::vector<Bounded> list = bounded(job);
  ASSERT_GT(list.size(), 2'000U);
  list.resize(2'000);
  Forecasting all(job, spaces().front()), alone(job, spaces().front());
  std::vector<int> times(list.size());
  all.each(list, all_wanted, [&](std::size_t i, Forecasts&& found) {
    ++times[i];
    const Strategy& s = list[i].strategy;
    EXPECT_GE(found.bound, list[i].bound);
    EXPECT_GE(found.bound_as_it_is, found.bound);
    const auto again = alone.forecast_of(s);
    EXPECT_EQ(found.as_it_is.has_value(), again.has_value() && s.deeper == 0);
    if (again && found.as_it_is) {
      EXPECT_EQ(found.as_it_is->forecast.time, again->time) << words(s);
      EXPECT_EQ(found.as_it_is->forecast.memory, again->memory) << words(s);
    }
  });
  EXPECT_EQ(std::ranges::count(times, 1), std::ssize(list));
}

TEST(Forecasting, LeavesWhatIsNotWanted) {
  const Job job = planned_llama(16, 8, 32);
  const std::vector<Bounded> list = bounded(job);
  const double enough = list[list.size() / 8].bound;
  std::atomic<double> known = std::numeric_limits<double>::infinity();
  const auto known_enough = [&](const Strategy&) { return known.load(); };
  std::size_t wanted = 0, others = 0;
  Forecasting(job, spaces().front()).each(list, known_enough, [&](std::size_t, Forecasts&& found) {
    if (found.as_it_is || found.deeper) ++(found.bound_as_it_is <= enough ? wanted : others);
    known = enough;
  });
  EXPECT_GT(wanted, list.size() / 16);
  EXPECT_LE(others, std::max(1U, std::thread::hardware_concurrency()))
      << "each thread has one before it has heard";
}

TEST(Forecasting, HandsOnWhatIsThrown) {
  const Job job = planned_llama(4, 4, 4);
  const std::vector<Bounded> list = bounded(job);
  Forecasting all(job, spaces().front());
  EXPECT_THROW(all.each(list, all_wanted, [](std::size_t, Forecasts&&) { throw 1; }), int);
}

// What one thread has seen of a structure, another must not need.
TEST(Forecasting, BoundsAreTheSameEachTime) {
  const Job job = planned_llama(16, 8, 32);
  const std::vector<Bounded> first = bounded(job), second = bounded(job);
  ASSERT_EQ(first.size(), second.size());
  for (std::size_t i = 0; i < first.size(); ++i)
    ASSERT_TRUE(first[i].bound == second[i].bound && first[i].strategy == second[i].strategy) << i;
}

// However they come: one by one, and from several lists.
TEST(Bounds, KeepTheLowest) {
  const auto bounded_by = [](std::size_t ns) {
    const auto bound = static_cast<double>(ns);
    return Bounded{bound, {}, bound - 0.5};
  };
  constexpr std::size_t kMost = Lowest::kMost;
  Lowest all, more;
  for (std::size_t i = 0; i < kMost; ++i) all.add(bounded_by(2 * i));
  all.cut();
  EXPECT_EQ(all.enough(), std::numeric_limits<double>::infinity());
  EXPECT_EQ(all.least_left(), std::numeric_limits<double>::infinity());
  for (std::size_t i = 3 * kMost; i > 0; --i) more.add(bounded_by(2 * i - 1));
  all.add(std::move(more));
  all.cut();
  EXPECT_EQ(all.list().size(), kMost);
  EXPECT_EQ(all.enough(), kMost - 1.0);
  EXPECT_EQ(all.least_left(), kMost - 0.5);
}

// What needs the pool is many, and must leave room for the others.
TEST(Bounds, KeepApartWhatFitsWithTransfersAlone) {
  Job job = planned_llama(8, 4, 16);
  job.supernode.hbm = Bytes(std::int64_t{2} << 30);
  job.supernode.pool = Bytes(std::int64_t{1} << 40);
  const Space& space = spaces().front();
  const Bounds all = bound_all(job, space, shapes_of(job, space), [](std::int64_t) {});
  ASSERT_GT(all.kept.list().size(), 100U);
  ASSERT_GT(all.kept_moved.list().size(), 100U);
  EXPECT_EQ(all.lowest().size(), all.kept.list().size() + all.kept_moved.list().size());
  Forecasting forecasting(job, space);
  std::int64_t fit = 0;
  for (const Bounded& b : all.kept.list())
    if (const auto f = forecasting.forecast_of(b.strategy)) fit += f->memory <= job.supernode.hbm.value;
  EXPECT_GT(fit, 0);
  for (const Bounded& b : all.kept_moved.list()) {
    const auto f = forecasting.forecast_of(b.strategy);
    EXPECT_TRUE(!f || f->memory > job.supernode.hbm.value) << words(b.strategy);
  }
}

// Larger micro-batches may keep less, by their bounds: what is said not to fit does not, each by itself.
TEST(Bounds, SayOfEachNumberOfSamplesWhetherItMayFit) {
  const Space& space = spaces().front();
  Job job = planned_llama(4, 4, 16);
  job.supernode.pool = Bytes(0);
  for (const std::int64_t hbm : {400'000'000, 800'000'000, 1'200'000'000}) {
    job.supernode.hbm = Bytes(hbm);
    PieceTable table(job);
    std::int64_t do_not_fit = 0;
    const auto look_at = [&](const Strategy& s, const Pieces* pieces) {
      const Forecast f = least_form(s, job.model, micro_batches(s, job.training.batch), {pieces, nullptr});
      do_not_fit += f.least_memory > hbm || f.least_here > hbm ? 1 : 0;
    };
    each_strategy(job, space, [&](const Strategy& s) {
      const Pieces* pieces = table.find_least(s);
      look_at(s, pieces);
      if (const auto uneven = balanced(s, job.model, *pieces)) look_at(*uneven, pieces);
    });
    const Bounds all = bound_all(job, space, shapes_of(job, space), [](std::int64_t) {});
    EXPECT_EQ(all.do_not_fit, do_not_fit);
    EXPECT_GT(all.do_not_fit, 0);
  }
}

// Heads that both split are exchanged in the same way, whichever of the two comes first in the mesh.
TEST(Bounds, HoldWhicheverOfTensorAndContextAxesComesFirst) {
  Job job = planned_llama(4, 8, 4);
  job.training.batch = 5;
  job.model.hidden = 320, job.model.heads = job.model.kv_heads = 8, job.model.head_dim = 40;
  job.model.sequence = job.model.positions = 24;
  PieceTable table(job);
  OrderBounds bounds(job, table);
  Strategy first;
  first[PlanAxis::kTensor] = first[PlanAxis::kContext] = 2;
  for (const PlanRecompute recompute : {PlanRecompute::kNone, PlanRecompute::kFull}) {
    first.recompute = recompute;
    const double bound = bounds.of(first).in_any;
    ASSERT_GT(bound, 0);
    for (const Strategy& s : orders_of(first))
      EXPECT_LE(bound, try_strategy(job, s, {}).simulated) << words(s);
  }
}

void expect_bounds_hold(Job job, Strategy s) {
  job.supernode.hbm = Bytes(std::int64_t{1} << 50);
  PieceTable table(job);
  OrderBounds bounds(job, table);
  const std::int32_t m = micro_batches(s, job.training.batch);
  for (s.recompute = PlanRecompute::kNone;; s.recompute = *next_after(s.recompute)) {
    const Pieces& pieces = *table.find(s);
    const Forecast f = closed_form(s, job.model, m, {&pieces, nullptr}, table.message_time(s, pieces));
    const double simulated = try_strategy(job, s, f).simulated;
    EXPECT_LE(f.bound, simulated) << words(s) << " of " << m;
    EXPECT_LE(bounds.of(s).in_any, simulated) << words(s) << " of " << m;
    if (!next_after(s.recompute)) return;
  }
}

// Of few tokens gradients are most of a pass, and the first micro-batch has none to add its own to.
TEST(Bounds, HoldOfTheFirstMicroBatchWhichAddsToNothing) {
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

// A device's first stage is of dense layers, its second one of experts, and has more to do before its first
// pass.
TEST(Bounds, HoldWhereADevicesStagesAreUnlike) {
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

// What a layer recomputes on another stream is there before its first product of the way back.
TEST(Bounds, HoldWhereRecomputingRunsAhead) {
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

// Collectives are the limit, and the first gathers weights while others are copied yet.
TEST(Bounds, HoldWhereWeightsAreGatheredBeforeTheFirstPass) {
  Job job = planned_llama(4, 6, 16);
  job.model.heads = job.model.kv_heads = 4, job.model.head_dim = 128;
  job.model.hidden = 512, job.model.ffn = 1536, job.model.vocab = 512;
  job.model.sequence = job.model.positions = 256;
  PieceTable table(job);
  Strategy s;
  s[PlanAxis::kData] = 4;
  for (s.zero = 0; s.zero <= 3; ++s.zero) {
    const Pieces& pieces = *table.find(s);
    const Forecast f = closed_form(s, job.model, micro_batches(s, job.training.batch), {&pieces, nullptr},
                                   table.message_time(s, pieces));
    const double simulated = try_strategy(job, s, f).simulated;
    EXPECT_LE(f.bound, simulated) << words(s);
    EXPECT_GE(f.bound, 0.7 * simulated) << words(s);
  }
}

// What communicates behind a gradient waits for it to be scattered, and products for that; weights are
// gathered before all passes.
TEST(Bounds, KnowWhatWaitsForGradientsAndWeights) {
  Job job = planned_llama(16, 8, 16);
  for (Level& level : job.supernode.machine->levels) level.bandwidth.value /= 4;
  job.supernode.hbm = Bytes(std::int64_t{1} << 50);
  Strategy s;
  s[PlanAxis::kPipeline] = s[PlanAxis::kTensor] = 2, s[PlanAxis::kData] = 4;
  const auto share = [&](std::int32_t zero, std::int32_t micro_batches, std::int32_t chunks) {
    s.zero = zero, s.samples = job.training.batch / micro_batches / 4, s.chunks = chunks;
    s.schedule = chunks > 1 ? PlanSchedule::kInterleaved : PlanSchedule::k1f1b;
    PieceTable table(job);
    const double share = OrderBounds(job, table).of(s).in_any / try_strategy(job, s, {}).simulated;
    EXPECT_LE(share, 1) << words(s);
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
  PieceTable table(job);
  const Leader leader = try_strategy(job, s, {});
  ASSERT_GT(leader.simulated, 0) << words(s) << ": " << leader.why_not;
  const OrderBounds::Bound bound = OrderBounds(job, table).of(s);
  const double as_it_is = OrderBounds(job, table).as_it_is(s);
  EXPECT_LE(as_it_is, leader.simulated) << words(s);
  EXPECT_LE(bound.in_any, as_it_is) << words(s);
}

// The stage before need not wait for gradients of weights that are made behind what is handed on, which on a
// GPU take most of a pass of small layers.
TEST(Bounds, HoldWhereAPassEndsBehindWhatItHandsOn) {
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

// While the loss of one micro-batch is computed the next one's products begin.
TEST(Bounds, HoldWhereForwardPassesComeBetweenTheHeadAndItsWayBack) {
  const Job job =
      on("a100", 2, 8,
         "layers: 3 hidden: 128 heads: 4 kv_heads: 2 head_dim: 32 ffn: 256 vocab: 32000 sequence: 2048 "
         "experts { count: 16 choices: 1 ffn: 64 shared: 1 }");
  Strategy s;
  s[PlanAxis::kPipeline] = 2, s.schedule = PlanSchedule::kGpipe;
  for (const std::int32_t samples : {1, 2}) s.samples = samples, expect_bounded(job, s);
}

// Experts that tensor axes repeat are exchanged along these as well: each device of a mesh has a link to
// each.
TEST(Bounds, HoldWhereLargerGroupsHaveMoreLinks) {
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

// Gradients of weights that no dimension is split of are added up by an all-reduce, which between hosts takes
// less than to scatter them would, and once a step.
TEST(Bounds, HoldWhereZeroSplitsNothing) {
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

// Products of gradients of weights that are put off hide no more of a pass than its end: in streams that are
// in order nothing begins while they last.
TEST(Bounds, KnowThatWhatIsPutOffComesBetweenPasses) {
  Job job = planned_llama(8, 8, 32);
  job.supernode.hbm = Bytes(std::int64_t{1} << 50);
  Strategy s;
  s.schedule = PlanSchedule::kZeroBubble;
  for (const std::int32_t stages : {2, 4})
    for (const std::int32_t micro_batches : {8, 32}) {
      s[PlanAxis::kPipeline] = stages, s[PlanAxis::kTensor] = 8 / stages, s.samples = 32 / micro_batches;
      PieceTable table(job);
      const double simulated = try_strategy(job, s, {}).simulated;
      const double share = OrderBounds(job, table).of(s).in_any / simulated;
      EXPECT_LE(share, 1) << words(s);
      EXPECT_GT(share, 0.94) << words(s) << ": 0.70 to 0.81 where they hide all that is waited for";
      EXPECT_NEAR(Forecasting(job, spaces().front()).forecast_of(s)->time / simulated, 1, 0.02) << words(s);
    }
}

// A step may be shorter with a layer more that recomputes more, as what it recomputes need not wait for what
// comes from the layer behind: the bound of what a strategy stands for knows of all these numbers.
TEST(Bounds, HoldWithAnyNumberOfLayersThatRecomputeMore) {
  std::size_t strategies = 0, fallen = 0;
  for (Job job : {planned_llama(4, 6, 4), planned_mixture(4, 6, 4)}) {
    PieceTable table(job);
    OrderBounds bounds(job, table);
    job.supernode.hbm = Bytes(std::int64_t{1} << 50);
    for (const Bounded& first : bounded(job)) {
      Strategy s = first.strategy;
      const OrderBounds::Bound none = bounds.of(s);
      EXPECT_LE(first.of_more, first.bound);
      EXPECT_LE(none.of_more, none.in_any);
      if (!may_recompute_more(s, job.model.layers)) continue;
      Strategy more = s;
      more.recompute = *next_after(s.recompute);
      const LayersPieces pieces{table.find_least(s), table.find_least(more)};
      const std::int32_t m = micro_batches(s, job.training.batch);
      // By the number of layers that recompute more: what each says of itself, and of more.
      std::vector<double> bound, in_any, share_of, of_more;
      const double share = least_share(pieces, s, job.model.layers);
      for (s.deeper = 0; s.deeper < most_layers(s, job.model.layers); ++s.deeper) {
        ++strategies;
        const OrderBounds::Bound of = bounds.of(s);
        bound.push_back(least_form(s, job.model, m, pieces).bound);
        share_of.push_back(share * bound.back());
        in_any.push_back(of.in_any), of_more.push_back(of.of_more);
        for (std::size_t d = 0; d < bound.size(); ++d) {
          EXPECT_LE(share_of[d], bound.back() * (1 + 1e-12)) << words(s) << " beside " << d;
          EXPECT_LE(of_more[d], in_any.back() * (1 + 1e-12)) << words(s) << " beside " << d;
        }
      }
      EXPECT_EQ(first.of_more, share_of.front());
      const bool falls = std::ranges::min(bound) < bound.front();
      fallen += falls ? 1 : 0;
    }
  }
  EXPECT_GT(strategies, 1'000U);
  EXPECT_GT(fallen, 10U) << "nothing is shown";
}

// Where some layers of a stage recompute more, one has another beside it. Alone it is or is not of these.
TEST(Bounds, LoseNothingWhereALayerIsAlone) {
  const Job job = planned_mixture(8, 12, 8);
  PieceTable table(job);
  Strategy s, more;
  s[PlanAxis::kTensor] = 2;
  more = s, more.recompute = PlanRecompute::kSelective;
  const LayersPieces pieces{table.find_least(s), table.find_least(more)};
  const auto share = [&](std::int32_t stages, std::int32_t chunks, std::int32_t lead) {
    s[PlanAxis::kPipeline] = stages, s.chunks = chunks, s.lead = lead;
    return least_share(pieces, s, 12);
  };
  ASSERT_LT(between(pieces).backward, 0) << "nothing is shown";
  EXPECT_GT(share(12, 1, 0), share(6, 1, 0)) << "of layers that are alone";
  EXPECT_EQ(share(7, 1, 0), share(6, 1, 0)) << "some are two";
  EXPECT_GT(share(4, 1, 0), share(6, 1, 0)) << "more than two";
  EXPECT_EQ(share(4, 1, 1), share(4, 1, 0)) << "13 shares: 3, 3, 3 and 3 layers";
  EXPECT_GT(share(2, 6, 0), share(2, 3, 0)) << "of the six or three stages of a device";
}

}  // namespace
}  // namespace hyperrun::testing

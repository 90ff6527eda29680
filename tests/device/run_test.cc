// Properties of every run: it repeats bit for bit, with any number of threads; hosts and micro-batches change
// no number; memory and traffic are as planned, to the byte.
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <set>
#include <tuple>

#include "runtime/base/error.h"
#include "runtime/compile/compile.h"
#include "runtime/ir/live_bytes.h"
#include "tests/support/in_process_run.h"
#include "tests/support/jobs.h"
#include "tests/support/relative.h"

namespace hyperrun::testing {
namespace {

Job short_job(int dp, int tp, const std::vector<std::string>& presets = {}) {
  Job job = small_job(dp, tp, presets);
  job.training.steps = 6;
  return job;
}

void expect_identical(const RunResult& a, const RunResult& b) {
  EXPECT_EQ(a.losses, b.losses);
  EXPECT_EQ(a.grad_norms, b.grad_norms);
  EXPECT_TRUE(a.weights == b.weights);
  EXPECT_TRUE(a.moments == b.moments);
  EXPECT_EQ(a.tokens, b.tokens);
}

void expect_near(const RunResult& a, const RunResult& b, double tolerance) {
  ASSERT_EQ(a.losses.size(), b.losses.size());
  for (std::size_t s = 0; s < a.losses.size(); ++s)
    EXPECT_NEAR(a.losses[s], b.losses[s], tolerance * a.losses[s]) << s;
}

TEST(Run, TwiceIsBitwiseTheSame) {
  Job job = short_job(2, 2, {"sp", "zero1"});
  job.training.micro_batches = 2;
  const RunResult once = run_in_process(job);
  ASSERT_EQ(once.losses.size(), 6U);
  expect_identical(once, run_in_process(job));
}

TEST(Run, AnotherSeedIsAnotherRun) {
  Job job = short_job(1, 1);
  const RunResult once = run_in_process(job);
  job.run.seed = 2;
  EXPECT_NE(run_in_process(job).losses, once.losses);
}

TEST(Run, AThreadPerStreamIsBitwiseOneThread) {
  for (const auto& [dp, tp] : {std::pair{1, 1}, {2, 2}}) {
    Job job = short_job(dp, tp, {"sp", "zero1"});
    job.training.micro_batches = 2;
    job.run.generate.tokens = 3;
    expect_identical(run_in_process(job), run_in_process(job, {.thread_per_stream = true}));
  }
}

// Replicas compute the same values from the same sums, each for itself.
TEST(Run, ReplicasHoldTheSameBits) {
  for (const char* parallel : {"dp:3", "dp:4 zero1", "tp:4", "dp:2 tp:4 sp", "replicas:2 dp:2 zero3"}) {
    Job job = small_job(parallel);
    job.training.steps = 2;
    job.training.batch = 12;
    for (const int hosts : {1, job.supernode.devices})
      EXPECT_EQ(run_in_process(job, {.hosts = hosts}).strays, std::vector<std::string>())
          << parallel << " on " << hosts << " hosts";
  }
}

// Sums between hosts are taken in another order.
TEST(Run, AcrossHostsByMessages) {
  const Job job = short_job(2, 2, {"sp"});
  const RunResult one = run_in_process(job);
  for (const int hosts : {2, 4}) {
    const RunResult many = run_in_process(job, {.hosts = hosts});
    expect_near(one, many, 1e-4);
    expect_identical(many, run_in_process(job, {.hosts = hosts}));
  }
  expect_near(one, run_in_process(job, {.hosts = 2, .thread_per_stream = true}), 1e-4);
}

TEST(Run, MicroBatchesDoNotChangeTheLoss) {
  Job job = short_job(2, 1);
  const RunResult whole = run_in_process(job);
  for (const int cut : {2, 4}) {
    job.training.micro_batches = cut;
    expect_near(whole, run_in_process(job), 1e-5);
  }
}

TEST(Run, ClippingBoundsTheStepNotTheReportedNorm) {
  Job job = short_job(1, 1);
  job.training.clip_norm = 0;
  const RunResult free = run_in_process(job, {.steps = 1});
  job.training.clip_norm = free.grad_norms[0] / 2;
  const RunResult clipped = run_in_process(job, {.steps = 1});
  EXPECT_EQ(free.grad_norms, clipped.grad_norms);
  for (const auto& [name, m] : free.moments) {
    std::vector<float> scaled = m;  // first moments are linear in the gradient, second ones quadratic
    for (float& x : scaled) x *= name.ends_with(".adam_m") ? 0.5F : 0.25F;
    EXPECT_LT(relative(scaled, clipped.moments.at(name)), 1e-6) << name;
  }
}

// --- Plans, to the byte ------------------------------------------------------------------------------

struct Layouts {
  std::string name;
  int dp, tp;
  std::vector<std::string> presets;
  int micro_batches;
  std::int32_t tokens;
};

std::ostream& operator<<(std::ostream& out, const Layouts& l) { return out << l.name; }

class AsPlanned : public ::testing::TestWithParam<Layouts> {
 protected:
  Job job() const {
    Job job = short_job(GetParam().dp, GetParam().tp, GetParam().presets);
    job.training.micro_batches = GetParam().micro_batches;
    job.training.steps = 2;
    job.run.generate.tokens = GetParam().tokens;
    return job;
  }
};

// The budget is the planned peak itself: one byte more is neither needed nor touched.
TEST_P(AsPlanned, ThePeakIsReachedAndNotExceeded) {
  Job j = job();
  const Plan plan = compile(j).plan;
  j.supernode.hbm = plan.peak();
  const RunResult run = run_in_process(j);
  for (const Bytes& touched : run.high_water) EXPECT_EQ(touched, plan.peak());
  j.supernode.hbm -= Bytes(1);
  EXPECT_THROW(run_in_process(j), Error);
}

TEST_P(AsPlanned, EachCollectiveMovesItsFormulasBytes) {
  const Job j = job();
  const Plan plan = compile(j).plan;
  std::map<std::string, std::int64_t> planned;
  for (const Instr& i : plan.roles[0].program("train").instrs)
    if (const auto* c = std::get_if<instr::Collective>(&i.op)) {
      // A single number cannot be split: it goes to each of the others.
      const bool single = c->kind == instr::CollectiveKind::kAllReduce && c->inner == 1;
      planned[std::string(name(c->kind)) + " " + plan.mesh.to_string(c->axes)] +=
          single ? 4 * (plan.mesh.size(c->axes) - 1) : work(i, plan.mesh).wire.value;
    }
  const RunResult run = run_in_process(j);
  for (const InvocationStats& stats : run.stats) {
    std::map<std::string, std::int64_t> moved;
    for (const Traffic& t : stats.traffic) moved[t.kind.collective + " " + t.kind.axes] += t.bytes.value;
    EXPECT_EQ(moved, planned);
  }
}

// The counter of HBM over a step: from the state up to the planned peak and back to the state.
TEST_P(AsPlanned, LiveBytesRiseFromTheStateAndFallBackToIt) {
  const Plan plan = compile(job()).plan;
  const Program& train = plan.roles[0].program("train");
  std::int64_t state = 0, first = 0;
  for (const Buffer& b : train.buffers) {
    if (b.state) state += b.bytes.value;
    if (!b.state && b.first == 0) first += b.bytes.value;
  }
  for (const bool threads : {false, true}) {
    for (const InvocationStats& stats : run_in_process(job(), {.thread_per_stream = threads}).stats) {
      ASSERT_EQ(stats.live[0].size(), 2 * train.instrs.size());
      std::int64_t most = 0;
      for (const auto& [time, bytes] : stats.live[0]) {
        EXPECT_GE(bytes, state);
        most = std::max(most, bytes);
      }
      EXPECT_LE(most, plan.peak().value);
      EXPECT_GT(most, state);
      EXPECT_EQ(stats.live_peak.value, most) << "as it happened";
      EXPECT_EQ(std::accumulate(stats.live_at_peak.begin(), stats.live_at_peak.end(), Bytes(0)),
                stats.live_peak);
      if (!threads) {
        EXPECT_GE(stats.live_peak, peak_use(train).bytes) << "collectives only hold on to their buffers";
      }
      EXPECT_EQ(stats.live[0].back().second, state);
      EXPECT_TRUE(std::is_sorted(stats.live[0].begin(), stats.live[0].end(),
                                 [](const auto& a, const auto& b) { return a.first < b.first; }));
      if (!threads) {
        EXPECT_EQ(stats.live[0].front().second, state + first);
      }
    }
  }
}

// With nothing under way beside it, the counter depends on the Program alone.
TEST(OneDevice, CountsTheLiveBytesOfEveryInstruction) {
  const Job job = short_job(1, 1);
  const Program train = compile(job).plan.roles[0].program("train");
  const auto live = [&](auto alive) {
    std::int64_t sum = 0;
    for (const Buffer& b : train.buffers)
      if (b.state || (b.first >= 0 && alive(b))) sum += b.bytes.value;
    return sum;
  };
  std::vector<std::int64_t> expected, counted;
  for (std::int32_t i = 0; i < std::ssize(train.instrs); ++i) {
    expected.push_back(live([i](const Buffer& b) { return b.first <= i && i <= b.last; }));
    expected.push_back(live([i](const Buffer& b) { return b.first <= i && i < b.last; }));
  }
  const RunResult run = run_in_process(job, {.steps = 1});
  for (const auto& [time, bytes] : run.stats[0].live[0]) counted.push_back(bytes);
  EXPECT_EQ(counted, expected);
  EXPECT_EQ(*std::max_element(counted.begin(), counted.end()), run.stats[0].live_peak.value);
}

INSTANTIATE_TEST_SUITE_P(All, AsPlanned,
                         ::testing::Values(Layouts{"one", 1, 1, {}, 1, 0},
                                           Layouts{"dp2zero1", 2, 1, {"zero1"}, 2, 2},
                                           Layouts{"tp2sp", 1, 2, {"sp"}, 1, 2},
                                           Layouts{"dp2tp2spzero1", 2, 2, {"sp", "zero1"}, 2, 0}),
                         [](const auto& info) { return info.param.name; });

// --- Generation -------------------------------------------------------------------------------------

TEST(Generation, TheSameTextUnderEveryLayout) {
  Job single = short_job(1, 1);
  single.training.steps = 15;
  single.run.generate.tokens = 12;
  const RunResult one = run_in_process(single);
  ASSERT_EQ(one.tokens.size(), 12U);
  EXPECT_GT(std::set<int>(one.tokens.begin(), one.tokens.end()).size(), 2U) << "it says one thing only";
  for (const auto& [dp, tp, presets] :
       {std::tuple{2, 1, std::vector<std::string>{}}, {1, 4, {}}, {2, 2, {"sp"}}, {2, 2, {"zero1"}}}) {
    Job job = short_job(dp, tp, presets);
    job.training.steps = 15;
    job.run.generate.tokens = 12;
    EXPECT_EQ(run_in_process(job).tokens, one.tokens) << dp << "x" << tp;
  }
}

TEST(Generation, SamplingFollowsTheSeed) {
  Job job = short_job(1, 2);
  job.training.steps = 1;
  job.run.generate.tokens = 12;
  job.run.generate.temperature = 2;
  const std::vector<int> once = run_in_process(job).tokens;
  EXPECT_EQ(run_in_process(job).tokens, once);
  job.run.seed = 7;
  EXPECT_NE(run_in_process(job).tokens, once);
}

// --- Failure ----------------------------------------------------------------------------------------

class Failure : public ::testing::TestWithParam<RunOptions> {};

// The other devices are in a collective with it and must not wait for ever; the first cause is reported.
TEST_P(Failure, ADeviceThatThrowsEndsTheOthers) {
  RunOptions options = GetParam();
  options.before_step = [](int device, std::int64_t step) {
    if (device == 1 && step == 2) throw Error(Code::kUnwritable, "device 1 is broken");
  };
  try {
    run_in_process(short_job(2, 2, {"sp"}), options);
    ADD_FAILURE() << "it ended well";
  } catch (const Error& e) {
    EXPECT_EQ(e.cause(), "device 1 is broken");
  }
}

TEST_P(Failure, AnInstructionThatThrowsEndsTheOthers) {
  RunOptions options = GetParam();
  options.batch = [](auto step, auto first, auto, auto, auto, auto*, auto*) {
    if (step == 2 && first > 0) throw Error(Code::kBadCorpus, "the text ends here");
  };
  try {
    run_in_process(short_job(2, 2), options);
    ADD_FAILURE() << "it ended well";
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), Code::kBadCorpus);
  }
}

INSTANTIATE_TEST_SUITE_P(Ways, Failure,
                         ::testing::Values(RunOptions{}, RunOptions{.thread_per_stream = true},
                                           RunOptions{.hosts = 2},
                                           RunOptions{.hosts = 2, .thread_per_stream = true}),
                         [](const auto& info) {
                           return std::string(info.param.hosts == 1 ? "OneHost" : "TwoHosts") +
                                  (info.param.thread_per_stream ? "Threads" : "InOrder");
                         });

}  // namespace
}  // namespace hyperrun::testing

// One program, two machines: the simulated bytes are the executed ones, on each device, exactly.
#include <gtest/gtest.h>

#include <ostream>

#include "runtime/compile/compile.h"
#include "runtime/sim/job_forecast.h"
#include "runtime/sim/simulate.h"
#include "tests/support/in_process_run.h"
#include "tests/support/jobs.h"
#include "tests/support/samples.h"

namespace hyperrun::testing {
namespace {

struct Case {
  const char* parallel;
  int micro_batches = 1, hosts = 1;
  bool threads = false;
  bool policy = false;
};

std::string text(const Case& c) {
  std::string text =
      test_title(c.parallel) + "mb" + std::to_string(c.micro_batches) + "hosts" + std::to_string(c.hosts);
  return text + (c.threads ? "threads" : "") + (c.policy ? "policy" : "");
}

void PrintTo(const Case& c, std::ostream* out) { *out << text(c); }

std::string title(const ::testing::TestParamInfo<Case>& info) { return text(info.param); }

class SimulatedEqualsExecuted : public ::testing::TestWithParam<Case> {
 protected:
  static Job job() {
    Job job = small_job(GetParam().parallel);
    job.training.micro_batches = GetParam().micro_batches;
    job.training.batch = 16;
    if (GetParam().policy) job.training.policy = {.clip = 0.2, .kl = 0.1};
    return job;
  }
  static Topology topology() {
    return Topology::uniform(GetParam().hosts, job().supernode.devices / GetParam().hosts);
  }
};

TEST_P(SimulatedEqualsExecuted, PeakAndTrafficOfEachDevice) {
  const Plan plan = compile(job()).plan;
  RunOptions options{.hosts = GetParam().hosts, .thread_per_stream = GetParam().threads, .steps = 2};
  if (GetParam().policy) options.samples = [](std::int64_t step) { return made_up_samples(job(), step); };
  const RunResult run = run_in_process(job(), options);
  const JobForecast f = forecast(job(), plan, topology());
  ASSERT_EQ(run.stats.size(), f.train.class_of.size());
  for (std::size_t d = 0; d < run.stats.size(); ++d) {
    const InvocationStats& executed = run.stats[d];
    const InvocationStats simulated = f.train.stats(static_cast<int>(d));
    const std::size_t role = plan.role_of(static_cast<std::int64_t>(d));
    EXPECT_EQ(f.high_water[role][0], plan.roles[role].peak()) << "as planned";
    EXPECT_EQ(executed.high_water, f.high_water[role]) << "device " << d;
    EXPECT_EQ(executed.traffic, simulated.traffic) << "device " << d;
    EXPECT_EQ(executed.spans.size(), f.train.times(static_cast<int>(d)).spans.size());
    EXPECT_LE(executed.live_peak, executed.high_water[0]) << "device " << d;
    if (!GetParam().threads) {
      EXPECT_GE(executed.live_peak, simulated.live_peak) << "device " << d;
    }
    if (run.stats.size() == 1) {
      EXPECT_EQ(executed.live_at_peak, simulated.live_at_peak) << "nothing overlaps";
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Layouts, SimulatedEqualsExecuted,
                         ::testing::Values(Case{""}, Case{"", 2}, Case{"dp:2"}, Case{"dp:2 zero1", 2},
                                           Case{"tp:2"}, Case{"tp:2 sp", 2}, Case{"dp:2 tp:2", 2},
                                           Case{"dp:2 tp:2 sp zero1"}, Case{"dp:4 zero1"}, Case{"tp:4 sp"},
                                           Case{"dp:8"}, Case{"dp:8 zero1", 2}, Case{"dp:4 tp:2 sp zero1", 2},
                                           Case{"dp:2 tp:4"}, Case{"dp:2 tp:4 sp zero1", 2}),
                         title);
INSTANTIATE_TEST_SUITE_P(Strategies, SimulatedEqualsExecuted,
                         ::testing::Values(Case{"tpx:4 tpy:2", 2}, Case{"tpx:2 tpy:4"}, Case{"cp:4", 2},
                                           Case{"cp:2 tp:2 sp"}, Case{"ring:4", 2}, Case{"ring:8"},
                                           Case{"ring:2 cp:2 tp:2 sp", 2}, Case{"dp:2 zero2", 2},
                                           Case{"dp:4 zero3", 2}, Case{"replicas:2 dp:2 tp:2 sp zero3", 2},
                                           Case{"dp:2 cp:2 tpx:2 tpy:1 zero2"}),
                         title);
INSTANTIATE_TEST_SUITE_P(Pipelines, SimulatedEqualsExecuted,
                         ::testing::Values(Case{"pp:2"}, Case{"pp:2 gpipe", 4}, Case{"pp:2 dp:2 zero1", 4},
                                           Case{"pp:2 tp:2 sp zero_bubble", 4}, Case{"pp:2 dp:2", 2, 2},
                                           Case{"tp:2 pp:2", 4, 2}, Case{"dp:2 pp:2 zero3", 2, 1, true}),
                         title);
INSTANTIATE_TEST_SUITE_P(Bfloat16, SimulatedEqualsExecuted,
                         ::testing::Values(Case{"dp:2 tp:2 sp zero1 bf16", 2}, Case{"dp:4 zero3 bf16", 2},
                                           Case{"ring:4 bf16"}, Case{"pp:2 dp:2 zero2 bf16", 4},
                                           Case{"tp:4 sp bf16", 1, 2}, Case{"tpx:2 tpy:2 bf16", 2}),
                         title);
INSTANTIATE_TEST_SUITE_P(Hosts, SimulatedEqualsExecuted,
                         ::testing::Values(Case{"dp:2", 1, 2}, Case{"tp:2 sp", 1, 2},
                                           Case{"dp:2 tp:2 sp", 2, 2}, Case{"dp:4 zero1", 1, 2},
                                           Case{"tp:4 sp", 1, 2}, Case{"dp:2 tp:4 sp zero1", 1, 2},
                                           Case{"dp:8", 1, 2}, Case{"dp:4 tp:2", 1, 4}, Case{"ring:4", 1, 2},
                                           Case{"ring:4", 1, 4}),
                         title);
INSTANTIATE_TEST_SUITE_P(Threads, SimulatedEqualsExecuted,
                         ::testing::Values(Case{"dp:2 tp:2 sp zero1", 1, 1, true},
                                           Case{"dp:2 tp:2", 1, 2, true}, Case{"ring:4", 2, 1, true},
                                           Case{"ring:2 cp:2", 1, 2, true}),
                         title);

INSTANTIATE_TEST_SUITE_P(Policies, SimulatedEqualsExecuted,
                         ::testing::Values(Case{"", 2, 1, false, true},
                                           Case{"dp:2 tp:2 sp zero1", 2, 1, false, true},
                                           Case{"ring:4", 2, 1, false, true},
                                           Case{"pp:2 dp:2 bf16", 2, 1, false, true}),
                         title);

// A job that only scores: its passes last as simulated, and its samples and log probabilities move as many
// bytes.
TEST(EqualsExecuted, BytesOfScoring) {
  for (const std::string layout : {"dp:1", "dp:2 tp:2 sp", "ring:4", "pp:2"}) {
    const Job job = small_job(layout);
    const Plan plan = compile_scoring(job).plan;
    RunOptions options;
    options.only_scores = true;
    options.samples = [&](std::int64_t) { return to_be_scored(made_up_samples(job, 0)); };
    const RunResult run = run_in_process(job, options);
    const SimResult r = simulate(plan, "score", job.supernode, Topology::uniform(1, job.supernode.devices));
    EXPECT_GT(r.makespan, Nanos(0));
    for (int d = 0; d < job.supernode.devices; ++d) {
      EXPECT_EQ(run.stats[static_cast<std::size_t>(d)].traffic, r.stats(d).traffic) << layout << " " << d;
      EXPECT_EQ(run.high_water[static_cast<std::size_t>(d)], plan.of_device(d).peak()) << layout << " " << d;
    }
  }
}

// With three devices and a prime vocabulary the slices of the all-reduces differ.
TEST(EqualsExecuted, BytesOfUnevenSlices) {
  Job job = small_job(3, 1);
  job.model.vocab = 331;
  job.training.batch = 6;
  for (const int hosts : {1, 3}) {
    const RunResult run = run_in_process(job, {.hosts = hosts, .steps = 1});
    const SimResult r =
        simulate(compile(job).plan, "train", job.supernode, Topology::uniform(hosts, 3 / hosts));
    for (int d = 0; d < 3; ++d)
      EXPECT_EQ(run.stats[static_cast<std::size_t>(d)].traffic, r.stats(d).traffic) << d;
    EXPECT_NE(r.traffic[0], r.traffic[2]) << "or the test shows nothing";
    EXPECT_EQ(r.classes.size(), 1u);
  }
}

}  // namespace
}  // namespace hyperrun::testing

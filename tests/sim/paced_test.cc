// The paced clock: real threads and messages, to scale of the simulated machine. Numbers stay the same, and
// nothing ends before its time; bench/paced measures how much later it ends.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "runtime/compile/compile.h"
#include "runtime/sim/simulate.h"
#include "tests/support/in_process_run.h"
#include "tests/support/jobs.h"

namespace hyperrun::testing {
namespace {

class Paced : public ::testing::TestWithParam<const char*> {
 protected:
  static RunOptions options(const Job& job) {
    RunOptions o{.thread_per_stream = true, .steps = 2};
    o.durations = [&job](const Plan& plan, int device) {
      return durations(plan, "train", job.supernode, Topology::one_host(job.supernode.devices), device);
    };
    return o;
  }
};

TEST_P(Paced, ComputesTheSame) {
  const Job job = small_job(GetParam());
  const RunResult paced = run_in_process(job, options(job));
  const RunResult native = run_in_process(job, {.steps = 2});
  EXPECT_EQ(paced.losses, native.losses);
  EXPECT_EQ(paced.weights, native.weights);
  for (std::size_t d = 0; d < native.stats.size(); ++d)
    EXPECT_EQ(paced.stats[d].traffic, native.stats[d].traffic) << "a barrier moves nothing";
}

// For a stream in order, whose instructions wait for others: each lasts its time from its beginning, a
// collective from the arrival of the last of its group.
TEST_P(Paced, NothingEndsBeforeItsTime) {
  const Job job = small_job(GetParam());
  RunOptions o = options(job);
  o.dilation = 3;
  const RunResult run = run_in_process(job, o);
  const Plan plan = compile(job).plan;
  const SimResult simulated =
      simulate(plan, "train", job.supernode, Topology::one_host(job.supernode.devices));
  std::int64_t begin = run.stats[0].begin, end = run.stats[0].end;
  for (std::size_t d = 0; d < run.stats.size(); ++d) {
    begin = std::min(begin, run.stats[d].begin);
    end = std::max(end, run.stats[d].end);
    const std::vector<Nanos> lasts = o.durations(plan, static_cast<int>(d));
    std::array<std::int64_t, kStreams> free{};
    const Program& p = plan.of_device(static_cast<std::int64_t>(d)).program("train");
    for (std::size_t i = 0; i < lasts.size(); ++i) {
      const Span& s = run.stats[d].spans[i];
      EXPECT_GE(s.end - s.begin, 3 * lasts[i].value - 1) << p.name << " " << i << " of device " << d;
      auto& stream = free[static_cast<std::size_t>(p.instrs[i].stream)];
      EXPECT_GE(s.begin, stream) << "a stream is in order";
      stream = s.end;
    }
  }
  EXPECT_GE(end - begin, 3 * simulated.makespan.value - 1) << "no faster than the longest path";
}

INSTANTIATE_TEST_SUITE_P(Layouts, Paced,
                         ::testing::Values("dp:2 tp:2 sp zero1", "ring:2 cp:2", "pp:2 dp:2", "tpx:2 tpy:2",
                                           "dp:4 zero3", "pp:2 tp:2 sp zero_bubble"),
                         [](const auto& info) { return test_title(info.param); });

TEST(PacedGroup, LastsFromTheLastToCome) {
  const Job job = small_job("dp:2");
  RunOptions o{.thread_per_stream = true, .steps = 1};
  std::map<int, std::vector<Nanos>> lasts;
  for (int d = 0; d < 2; ++d) {
    lasts[d] = durations(compile(job).plan, "train", job.supernode, Topology::one_host(2), d);
    // Device 1 computes slowly; exchanges last a while.
    const Plan plan = compile(job).plan;
    const Program& p = plan.roles[0].program("train");
    for (std::size_t i = 0; i < lasts[d].size(); ++i)
      lasts[d][i] = communicates(p.instrs[i].stream) ? Nanos(2'000'000) : Nanos(d == 1 ? 200'000 : 0);
  }
  o.durations = [&](const Plan&, int device) { return lasts[device]; };
  const RunResult run = run_in_process(job, o);
  const Plan plan = compile(job).plan;
  const Program& p = plan.roles[0].program("train");
  for (std::size_t i = 0; i < p.instrs.size(); ++i)
    if (communicates(p.instrs[i].stream)) {
      const std::int64_t met = std::max(run.stats[0].spans[i].begin, run.stats[1].spans[i].begin);
      for (const InvocationStats& s : run.stats) EXPECT_GE(s.spans[i].end, met + 2'000'000);
    }
}

}  // namespace
}  // namespace hyperrun::testing

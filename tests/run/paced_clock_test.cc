// The paced clock: its dilation and its comparison of times, from made-up statistics.
#include "runtime/run/paced_clock.h"

#include <gtest/gtest.h>

#include <cmath>

#include "runtime/compile/compile.h"
#include "tests/support/jobs.h"

namespace hyperrun::testing {
namespace {

class PacedClockTest : public ::testing::Test {
 protected:
  // The simulated step of all devices, stretched by `dilation`. The last device ends `late` ns later.
  std::vector<InvocationStats> steps(double dilation, std::int64_t late) const {
    const SimResult r = simulate(session_.plan, "train", session_.job.supernode, Topology::one_host(4));
    std::vector<InvocationStats> stats;
    for (int d = 0; d < 4; ++d) {
      InvocationStats s;
      for (const Span& span : r.times(d).spans)
        s.spans.push_back({std::llround(static_cast<double>(span.begin) * dilation),
                           std::llround(static_cast<double>(span.end) * dilation)});
      s.busy = r.times(d).busy;
      s.end = std::llround(static_cast<double>(r.makespan.value) * dilation) + (d == 3 ? late : 0);
      stats.push_back(s);
    }
    return stats;
  }

  void SetUp() override {
    session_.job = small_job("dp:2 tp:2 sp");
    session_.plan = compile(session_.job).plan;
  }

  Session session_;
};

TEST_F(PacedClockTest, AStepAsSimulatedIsMeasuredAsPredicted) {
  session_.job.run.dilation = 250;
  PacedClock clock(session_, "train");
  EXPECT_EQ(clock.dilation(), 250);
  const std::int64_t predicted = clock.use().predicted.value;
  for (const std::int64_t late : {0, 250'000, 2'500'000}) clock.add(steps(250, late));
  EXPECT_EQ(clock.use().steps, 3);
  EXPECT_EQ(clock.use().measured, Nanos(predicted + 1000)) << "the median";
  std::int64_t count = 0;
  for (const PacedInstruction& i : clock.use().instructions) {
    EXPECT_EQ(i.measured, i.predicted) << i.instruction;
    count += i.count;
  }
  EXPECT_EQ(count, 3 * 4 * std::ssize(session_.plan.roles[0].program("train").instrs));
}

TEST_F(PacedClockTest, TheFirstStepChoosesADilationInWhichTheWorkFits) {
  PacedClock clock(session_, "train");
  EXPECT_EQ(clock.dilation(), 0);
  const std::int64_t slow = 100'000'000'000;  // 100 s of real work, all of which must fit
  clock.add(steps(1, slow));
  EXPECT_EQ(clock.use().steps, 0) << "it is not measured itself";
  EXPECT_GE(clock.dilation() * static_cast<double>(clock.use().predicted.value), 4.0 * slow);
}

}  // namespace
}  // namespace hyperrun::testing

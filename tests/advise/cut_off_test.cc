// Advice is cut off by the clock, and says so.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/advise/fit.h"
#include "runtime/base/error.h"
#include "runtime/base/time_limit.h"
#include "runtime/compile/compile.h"
#include "tests/support/errors.h"
#include "tests/support/jobs.h"

namespace hyperrun::testing {
namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

// The remedy for too little HBM, if the search has so long.
std::string remedy(const Job& job, std::chrono::milliseconds time) {
  const Plan plan = compile(job).plan;
  return error_of([&] { require_fit({job, {}}, plan, {kMostEffort, time}); }).remedy();
}

TEST(CutOff, ByTheClock) {
  Job job = small_job("dp:2 tp:2");
  job.supernode.hbm = compile(job).plan.peak() - Bytes(1);
  EXPECT_THAT(remedy(job, std::chrono::milliseconds(0)),
              AllOf(ContainsRegex("^raise supernode.hbm to .*\n    or use more devices\n"),
                    HasSubstr("\n  not tried for want of time: add "),
                    HasSubstr("\n  the search for what would fit was cut off after 0 s")));
  EXPECT_THAT(remedy(job, kMostTime), Not(HasSubstr("cut off")));
}

// A job that moves something has to be compiled again for the time of a step with enough HBM. It is left out.
TEST(CutOff, WithTransfers) {
  Job job = small_job("dp:2 tp:2");
  job.memory.policy = "hyperoffload";
  job.supernode.pool = kGiB;
  job.supernode.hbm = Bytes(1);
  EXPECT_THAT(
      remedy(job, std::chrono::milliseconds(0)),
      AllOf(ContainsRegex("^raise supernode.hbm to \"[0-9]+ B\"\n"), HasSubstr("was cut off after 0 s")));
}

TEST(CutOff, GivesUpACompilation) {
  const Job job = small_job("dp:2 tp:2");
  const TimeLimit limit(TimeLimit::Clock::now());
  EXPECT_THROW(compile(job), OutOfTime);
}

}  // namespace
}  // namespace hyperrun::testing

#include "runtime/run/restarts.h"

#include <gtest/gtest.h>

#include <csignal>

namespace hyperrun {
namespace {

control::Outcome lost() {
  control::Outcome outcome;
  outcome.error = Error(Code::kDeviceLost, "gone");
  outcome.any_started = true;
  return outcome;
}

TEST(Restarts, CountThoseWithoutANewCheckpoint) {
  Restarts restarts(2);
  EXPECT_TRUE(restarts.again(lost(), 0));
  EXPECT_TRUE(restarts.again(lost(), 0));
  EXPECT_FALSE(restarts.again(lost(), 0));
}

TEST(Restarts, ACheckpointBeginsTheCountAnew) {
  Restarts restarts(1);
  for (std::int64_t step = 10; step < 100; step += 10) EXPECT_TRUE(restarts.again(lost(), step)) << step;
  EXPECT_FALSE(restarts.again(lost(), 90));
}

TEST(Restarts, FollowLossesAlone) {
  Restarts restarts(9);
  for (const Code code : {Code::kNotFinite, Code::kInternal, Code::kUnwritable, Code::kDoesNotFit}) {
    control::Outcome outcome = lost();
    outcome.error = Error(code, "a fault of the job");
    EXPECT_FALSE(restarts.again(outcome, 0));
  }
  control::Outcome interrupted = lost();
  interrupted.signal = SIGINT;
  EXPECT_FALSE(restarts.again(interrupted, 0));
  control::Outcome never_started = lost();
  never_started.error = Error(Code::kMpi, "no such host");
  never_started.any_started = false;
  EXPECT_FALSE(restarts.again(never_started, 0));
  EXPECT_EQ(restarts.in_a_row(), 0);
}

TEST(Restarts, NoneIfNoneIsWanted) { EXPECT_FALSE(Restarts(0).again(lost(), 5)); }

}  // namespace
}  // namespace hyperrun

// The controller as its launcher's parent. The launcher here starts devices without MPI.
#include "runtime/control/supervise.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/control/fleet.h"
#include "tests/control/scripted_driver.h"

namespace hyperrun::control {
namespace {

using testing::HasSubstr;

struct Supervised {
  explicit Supervised(const std::vector<std::string>& behaviours, std::int64_t invocations = 1000000)
      : Supervised(behaviours, invocations, test_options(static_cast<std::int32_t>(behaviours.size()))) {}
  Supervised(const std::vector<std::string>& behaviours, std::int64_t invocations,
             const ControllerOptions& options)
      : driver(invocations) {
    Controller controller(options);
    LaunchCommand command{
        {CONTROL_ACTOR, "launcher", std::to_string(options.devices)},
        {{"HYPERRUN_CONTROLLER", controller.address()}, {"HYPERRUN_SECRET", options.secret}}};
    command.argv.insert(command.argv.end(), behaviours.begin(), behaviours.end());
    testing::internal::CaptureStdout();
    outcome = supervise(controller, driver, command);
    said = testing::internal::GetCapturedStdout();
    took = watch.seconds();
    for (const DeviceInfo& d : outcome.devices)
      EXPECT_NE(kill(d.pid, 0), 0) << "rank " << d.rank << " is still there";
  }

  ScriptedDriver driver;
  Stopwatch watch;
  Outcome outcome;
  std::string said;
  double took = 0;
};

TEST(Supervise, AGoodRun) {
  Supervised run({"none", "none"}, 100);
  ASSERT_TRUE(run.outcome.ok()) << run.outcome.error->what();
  EXPECT_EQ(run.driver.completed, 100);
  EXPECT_EQ(run.said, "launcher has 2 ranks\n");
}

TEST(Supervise, ALostRankEndsAll) {
  Supervised run({"none", "die"});
  ASSERT_TRUE(run.outcome.error);
  EXPECT_EQ(run.outcome.error->code(), Code::kDeviceLost);
  EXPECT_LT(run.took, 5);
}

TEST(Supervise, AStoppedRankDoesNotHoldUpTheEnd) {
  Supervised run({"none", "stop"});
  ASSERT_TRUE(run.outcome.error);
  EXPECT_EQ(run.outcome.error->code(), Code::kDeviceHung);
  EXPECT_LT(run.took, 0.8 + 5);
}

TEST(Supervise, ALauncherThatFailsAtOnceIsQuoted) {
  Supervised run({"exit-early", "exit-early"});
  ASSERT_TRUE(run.outcome.error);
  EXPECT_EQ(run.outcome.error->code(), Code::kMpi);
  EXPECT_THAT(run.outcome.error->what(), HasSubstr("exit code 3"));
  EXPECT_THAT(run.outcome.error->what(), HasSubstr("| cannot start: no such library"));
  EXPECT_LT(run.took, 5);
}

TEST(Supervise, AMissingLauncherIsAnError) {
  Controller controller(test_options(1));
  ScriptedDriver driver(1);
  const Outcome outcome = supervise(controller, driver, {{"no-such-mpirun"}, {}});
  ASSERT_TRUE(outcome.error);
  EXPECT_EQ(outcome.error->code(), Code::kMpi);
}

TEST(Supervise, TooFewSlotsHaveAnErrorOfTheirOwn) {
  Controller controller(test_options(1));
  ScriptedDriver driver(1);
  const Outcome outcome =
      supervise(controller, driver,
                {{"sh", "-c",
                  "echo 'There are not enough slots available in the system to satisfy the 30' >&2; exit 1"},
                 {}});
  ASSERT_TRUE(outcome.error);
  EXPECT_EQ(outcome.error->code(), Code::kTooFewRanks);
}

}  // namespace
}  // namespace hyperrun::control

// The controller as its launcher's parent. The launcher here starts devices without MPI.
#include "runtime/control/supervise.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "runtime/control/clock.h"
#include "tests/control/fleet.h"
#include "tests/control/scripted_driver.h"

namespace hyperrun::control {
namespace {

using testing::HasSubstr;

constexpr double kJoin = 1.5 * kSlowdown;
constexpr double kAllEnded = 5 * kSlowdown;

// The signal may take a moment to arrive.
bool has_ended(int pid) {
  const int fd = pidfd_open(pid, 0);
  if (fd < 0) return true;
  pollfd p{fd, POLLIN, 0};
  const bool ended = poll(&p, 1, 2000) == 1;
  close(fd);
  return ended;
}

struct Supervised {
  explicit Supervised(const std::vector<std::string>& behaviours, std::int64_t invocations = 1000000)
      : Supervised(behaviours, invocations, test_options(static_cast<std::int32_t>(behaviours.size()))) {}
  Supervised(const std::vector<std::string>& behaviours, std::int64_t invocations,
             const ControllerOptions& options)
      : driver(invocations) {
    Controller controller(options);
    process::LaunchCommand command{
        {CONTROL_ACTOR, "launcher", std::to_string(options.devices)},
        {{"HYPERRUN_CONTROLLER", controller.address()}, {"HYPERRUN_SECRET", options.secret}}};
    command.argv.insert(command.argv.end(), behaviours.begin(), behaviours.end());
    testing::internal::CaptureStdout();
    outcome = supervise(controller, driver, command);
    said = testing::internal::GetCapturedStdout();
    took = watch.seconds();
    for (const tasks::DeviceInfo& d : outcome.devices)
      EXPECT_TRUE(has_ended(d.pid)) << "rank " << d.rank << " is still there";
  }

  ScriptedDriver driver;
  Stopwatch watch;
  Outcome outcome;
  std::string said;
  double took = 0;
};

ControllerOptions starting_soon() {
  ControllerOptions options = test_options(3);
  options.join_seconds = kJoin;
  return options;
}

std::string not_joined_in_time() {
  return "not joined within " + to_text(std::chrono::milliseconds(std::lround(1000 * kJoin))) +
         " of the start";
}

int pid_in(const std::string& place) { return std::atoi(place.c_str() + place.rfind(' ')); }

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
  EXPECT_LT(run.took, kAllEnded);
}

// It is chance whether the rank was seen alive, so that its pid is known. A healthy rank must not be blamed.
// If the lost rank is known, another's not having joined yet is no blame.
TEST(Supervise, ARankThatDiesBeforeItJoinsIsNamedAndNoOther) {
  Supervised run({"none", "die-early", "none"});
  ASSERT_TRUE(run.outcome.error);
  const std::string text = run.outcome.error->what();
  EXPECT_THAT(text, HasSubstr("device 1"));
  EXPECT_THAT(text, testing::AnyOf(HasSubstr("lost: its process ended before it joined"),
                                   HasSubstr("exit code 137")));
  std::string blamed = text.substr(0, text.find("\n  the others:"));
  if (run.outcome.error->code() == Code::kDeviceLost)
    blamed = blamed.substr(0, blamed.find("\n  had not joined:"));
  EXPECT_THAT(blamed, testing::Not(testing::AnyOf(HasSubstr("device 0"), HasSubstr("device 2"))));
  EXPECT_LT(run.took, kAllEnded);
}

TEST(Supervise, ARankThatIsStoppedBeforeItJoinsIsNamedAndNoOther) {
  Supervised run({"none", "none", "stop-early"}, 1, starting_soon());
  ASSERT_TRUE(run.outcome.error);
  EXPECT_EQ(run.outcome.error->code(), Code::kDeviceHung);
  EXPECT_THAT(run.outcome.error->place(), testing::MatchesRegex("device 2 \\(host .*, pid [0-9]+\\)"));
  EXPECT_THAT(run.outcome.error->cause(), testing::StartsWith("hung: stopped by a signal"));
  EXPECT_TRUE(has_ended(pid_in(run.outcome.error->place())));
  EXPECT_LT(run.took, kJoin + kAllEnded);
}

TEST(Supervise, ARankThatNeverJoinsIsNamedAndNoOther) {
  Supervised run({"none", "sleep-early", "none"}, 1, starting_soon());
  ASSERT_TRUE(run.outcome.error);
  EXPECT_EQ(run.outcome.error->code(), Code::kDeviceHung);
  EXPECT_THAT(run.outcome.error->place(), testing::MatchesRegex("device 1 \\(host .*, pid [0-9]+\\)"));
  EXPECT_EQ(run.outcome.error->cause(), "hung: " + not_joined_in_time());
  EXPECT_TRUE(has_ended(pid_in(run.outcome.error->place())));
  EXPECT_LT(run.took, kJoin + kAllEnded);
}

TEST(Supervise, AStoppedRankDoesNotHoldUpTheEnd) {
  Supervised run({"none", "stop"});
  ASSERT_TRUE(run.outcome.error);
  EXPECT_EQ(run.outcome.error->code(), Code::kDeviceHung);
  EXPECT_LT(run.took, 0.8 + kAllEnded);
}

TEST(Supervise, ALauncherThatFailsAtOnceIsQuoted) {
  Supervised run({"exit-early", "exit-early"});
  ASSERT_TRUE(run.outcome.error);
  EXPECT_EQ(run.outcome.error->code(), Code::kMpi);
  EXPECT_THAT(run.outcome.error->what(), HasSubstr("exit code 3"));
  EXPECT_THAT(run.outcome.error->what(), HasSubstr("| cannot start: no such library"));
  EXPECT_LT(run.took, kAllEnded);
}

// mpirun that has lost a rank takes a while to end the others, in a crowd more than a moment. Open MPI 4.1
// crashes over a signal meanwhile.
TEST(Supervise, ALauncherThatIsEndingItsRanksIsNotSignalled) {
  const ControllerOptions options = test_options(2);
  Controller controller(options);
  ScriptedDriver driver(1000000);
  const std::string script =
      "trap 'echo signalled' TERM\n"
      "OMPI_COMM_WORLD_RANK=0 \"$0\" device 0 2 none &\n"
      "OMPI_COMM_WORLD_RANK=1 sleep 0.5 &\n"
      "wait $!; sleep 4.2 & wait $!; exit 1";
  testing::internal::CaptureStdout();
  const Outcome outcome =
      supervise(controller, driver,
                {{"bash", "-c", script, CONTROL_ACTOR},
                 {{"HYPERRUN_CONTROLLER", controller.address()}, {"HYPERRUN_SECRET", options.secret}}});
  EXPECT_EQ(testing::internal::GetCapturedStdout(), "");
  ASSERT_TRUE(outcome.error);
  EXPECT_THAT(outcome.error->what(), HasSubstr("device 1"));
}

// mpirun is stopped when all work is done. The devices wait for it in MPI_Finalize.
TEST(Supervise, AStoppedLauncherFailsNoRunThatIsDone) {
  const ControllerOptions options = test_options(2);
  Controller controller(options);
  ScriptedDriver driver(10);
  const std::string script =
      "OMPI_COMM_WORLD_RANK=0 \"$0\" device 0 2 linger &\n"
      "OMPI_COMM_WORLD_RANK=1 \"$0\" device 1 2 linger &\n"
      "kill -STOP $$";
  const Stopwatch watch;
  const Outcome outcome =
      supervise(controller, driver,
                {{"bash", "-c", script, CONTROL_ACTOR},
                 {{"HYPERRUN_CONTROLLER", controller.address()}, {"HYPERRUN_SECRET", options.secret}}});
  EXPECT_TRUE(outcome.ok()) << outcome.reason();
  EXPECT_TRUE(outcome.all_done);
  EXPECT_LT(watch.seconds(), 0.5 * options.drain_seconds);
  for (const tasks::DeviceInfo& d : outcome.devices)
    EXPECT_TRUE(has_ended(d.pid)) << "rank " << d.rank << " is still there";
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

// Devices that die, hang and fail, as processes of their own.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "tests/control/fleet.h"
#include "tests/control/scripted_driver.h"

namespace hyperrun::control {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

constexpr double kAllEnded = 5 * kSlowdown;

// Runs a job to its end, with one behaviour a rank.
struct Accident {
  Accident(const std::vector<std::string>& behaviours, ControllerOptions options,
           const std::vector<std::string>& machines = {})
      : controller(options) {
    const auto n = static_cast<std::int32_t>(behaviours.size());
    for (std::int32_t r = 0; r < n; ++r) {
      const auto i = static_cast<std::size_t>(r);
      fleet.start(r, n, behaviours[i], controller.address(), machines.empty() ? "" : machines[i]);
      pids.push_back(fleet.pid(r));
    }
    driver.lockstep = true;
    driver.hook = [this](std::int64_t done) {
      if (done == 5) last_step = Stopwatch();  // the fault comes at the next step
    };
    outcome = controller.run(driver);
    told = last_step.seconds();
  }
  explicit Accident(const std::vector<std::string>& behaviours)
      : Accident(behaviours, test_options(static_cast<std::int32_t>(behaviours.size()))) {}

  std::string text() const { return outcome.error ? outcome.error->what() : "no error"; }
  // Exit status of a rank, which must have ended soon after the fault.
  int status(std::int32_t rank) {
    const auto s = fleet.wait(rank, kAllEnded - last_step.seconds());
    EXPECT_TRUE(s) << "rank " << rank << " is still there";
    return s.value_or(-1000);
  }
  std::string name(std::size_t rank) const { return "device " + std::to_string(rank) + " (host "; }

  Controller controller;
  Fleet fleet;
  std::vector<int> pids;
  ScriptedDriver driver{1000000};
  Stopwatch last_step;
  Outcome outcome;
  double told = 0;
};

TEST(Failure, AKilledDeviceIsLostAtOnce) {
  Accident a({"none", "die", "none"});
  ASSERT_TRUE(a.outcome.error) << a.text();
  EXPECT_EQ(a.outcome.error->code(), Code::kDeviceLost);
  EXPECT_EQ(a.outcome.exit_status(), 8);
  EXPECT_THAT(a.text(), HasSubstr("device 1 (host "));
  EXPECT_THAT(a.text(), HasSubstr("pid " + std::to_string(a.pids[1])));
  EXPECT_EQ(a.status(1), -SIGKILL);
  EXPECT_EQ(a.status(0), 8);
  EXPECT_EQ(a.status(2), 8);
}

TEST(Failure, AStoppedDeviceIsNamedAndKilled) {
  Accident a({"none", "none", "stop"});
  ASSERT_TRUE(a.outcome.error) << a.text();
  EXPECT_EQ(a.outcome.error->code(), Code::kDeviceHung);
  EXPECT_EQ(a.outcome.exit_status(), 9);
  EXPECT_THAT(a.text(), HasSubstr("device 2 (host "));
  EXPECT_THAT(a.text(), HasSubstr("0.8 s; finished invocation 104, nothing of the next"));
  EXPECT_THAT(a.text(),
              HasSubstr("device 0: finished invocation 105, nothing of the next; train of step 42"));
  EXPECT_EQ(a.status(2), -SIGKILL);
  EXPECT_EQ(a.status(0), 9);
  EXPECT_EQ(a.status(1), 9);
}

TEST(Failure, AStoppedDeviceElsewhereIsKilledByItsNeighbour) {
  Accident a({"none", "stop", "none"}, test_options(3), {"here", "elsewhere", "elsewhere"});
  ASSERT_TRUE(a.outcome.error);
  EXPECT_EQ(a.outcome.error->code(), Code::kDeviceHung);
  EXPECT_THAT(a.text(), HasSubstr("device 1 (host "));
  EXPECT_EQ(a.status(1), -SIGKILL);
  EXPECT_EQ(a.status(0), 9);
  EXPECT_EQ(a.status(2), 9);
}

TEST(Failure, AFailingDeviceIsQuotedAndOthersEndWithItsCode) {
  Accident a({"fail", "none"});
  ASSERT_TRUE(a.outcome.error);
  EXPECT_EQ(a.outcome.error->code(), Code::kNotFinite);
  EXPECT_THAT(a.text(), HasSubstr("device 0 (host "));
  EXPECT_THAT(a.text(), HasSubstr("instruction 12: error[not-finite]: the loss is nan"));
  EXPECT_EQ(a.status(0), 10);
  EXPECT_EQ(a.status(1), 10);
}

// Ranks 0 and 2 feel that a peer is gone and say so, before or after the news of its end.
TEST(Failure, TheCauseIsToldAndNotItsConsequences) {
  Accident a({"consequence", "die", "consequence"});
  ASSERT_TRUE(a.outcome.error);
  EXPECT_THAT(a.text(), HasSubstr("device 1 (host "));
  EXPECT_THAT(a.text(), Not(HasSubstr("a peer does not answer")));
}

TEST(Failure, PeersThatGiveUpBeforeTheStoppedDeviceIsOverdueDoNotHideIt) {
  Accident a({"consequence", "stop"});
  ASSERT_TRUE(a.outcome.error);
  EXPECT_EQ(a.outcome.error->code(), Code::kDeviceHung);
  EXPECT_THAT(a.text(), HasSubstr("device 1 (host "));
  EXPECT_EQ(a.status(1), -SIGKILL);
}

TEST(Failure, ADeviceThatOnlyFeelsAConsequenceIsBelievedInTheEnd) {
  Accident a({"consequence", "none"});
  ASSERT_TRUE(a.outcome.error);
  EXPECT_THAT(a.text(), HasSubstr("a peer does not answer"));
}

// The device's main thread never looks at the abort: the link ends the process. (The device is on another
// machine, so the controller cannot do it.)
TEST(Failure, ADeviceThatIgnoresTheAbortIsEnded) {
  Accident a({"fail", "deaf"}, test_options(2), {"here", "elsewhere"});
  EXPECT_EQ(a.status(1), 10);
}

TEST(Failure, WithoutProgressTheOneFurthestBehindIsNamed) {
  ControllerOptions options = test_options(3);
  options.stall_seconds = 1.2;
  Accident a({"none", "stuck", "none"}, options);
  ASSERT_TRUE(a.outcome.error);
  EXPECT_EQ(a.outcome.error->code(), Code::kDeviceHung);
  EXPECT_THAT(a.text(), HasSubstr("device 1 (host "));
  EXPECT_THAT(a.text(), HasSubstr("no device finished an instruction for 1.2 s, and it is furthest behind"));
  EXPECT_EQ(a.status(1), -SIGKILL);
}

// Device 0 gets one invocation and device 1 all others: an idle device is furthest behind and not to blame.
class OneIsIdle : public ScriptedDriver {
 public:
  using ScriptedDriver::ScriptedDriver;

  std::vector<std::vector<std::int32_t>> device_groups() override { return {{0}, {1}}; }
  std::optional<tasks::Invocation> next_within(const tasks::Dispatcher& dispatcher) override {
    const tasks::GroupId group = issued_++ == 0 ? 1 : 2;
    if (!dispatcher.has_room(group)) return std::nullopt;
    std::optional<tasks::Invocation> invocation = next_invocation();
    invocation->group = group;
    return invocation;
  }
  void on_done(const tasks::Invocation&, std::span<const tasks::InvocationDone>) override {}
  std::string describe(const tasks::Invocation& i) const override {
    return "program p, task " + std::to_string(i.step);
  }

 private:
  int issued_ = 0;
};

TEST(Failure, ADeviceWithoutWorkIsNotToBlame) {
  ControllerOptions options = test_options(2);
  options.stall_seconds = 1.2;
  Controller controller(options);
  Fleet fleet;
  fleet.start(0, 2, "none", controller.address());
  fleet.start(1, 2, "stuck", controller.address());
  OneIsIdle driver(1000);
  const Outcome outcome = controller.run(driver);
  ASSERT_TRUE(outcome.error);
  EXPECT_THAT(outcome.error->what(),
              AllOf(HasSubstr("device 1 (host "), HasSubstr("; it has program p, task 5"),
                    HasSubstr("furthest behind")));
}

// The ranks of a stopped mpirun do all their work, and then cannot end.
TEST(Failure, AStoppedLauncherFailsNoRunThatIsDone) {
  ControllerOptions options = test_options(2);
  options.drain_seconds = 0.3;
  Controller controller(options);
  Fleet fleet;
  for (const std::int32_t rank : {0, 1}) fleet.start(rank, 2, "linger", controller.address());
  const std::int32_t launcher = 2;  // parent of the ranks, as far as the controller knows
  fleet.start(launcher, 2, "stop-early", "");
  ASSERT_EQ(waitpid(fleet.pid(launcher), nullptr, WUNTRACED), fleet.pid(launcher));
  controller.launcher_started(fleet.pid(launcher));
  ScriptedDriver driver(3);
  const Outcome outcome = controller.run(driver);
  EXPECT_TRUE(outcome.ok()) << outcome.reason();
  EXPECT_TRUE(outcome.all_done);
  EXPECT_TRUE(outcome.launcher_stopped);
  for (const std::int32_t rank : {0, 1}) EXPECT_TRUE(fleet.wait(rank, 5)) << rank;
}

TEST(Failure, AMessageAboveTheLimitIsNotRead) {
  ControllerOptions options = test_options(1);
  options.max_frame = std::size_t{1} << 20;
  Accident a({"huge"}, options);
  ASSERT_TRUE(a.outcome.error);
  EXPECT_THAT(a.text(), HasSubstr("where 1 to 1048576 are allowed"));
}

class Signal : public testing::TestWithParam<int> {};
TEST_P(Signal, EndsEverything) {
  ControllerOptions options = test_options(2);
  options.handle_signals = true;
  Controller controller(options);
  Fleet fleet;
  for (int r = 0; r < 2; ++r) fleet.start(r, 2, "none", controller.address());
  ScriptedDriver driver(1000000);
  driver.hook = [](std::int64_t done) {
    if (done == 20) kill(getpid(), GetParam());
  };
  const Outcome outcome = controller.run(driver);
  EXPECT_FALSE(outcome.ok());
  EXPECT_EQ(outcome.exit_status(), 128 + GetParam());
  EXPECT_TRUE(fleet.wait(0, kAllEnded));
  EXPECT_TRUE(fleet.wait(1, kAllEnded));
}
INSTANTIATE_TEST_SUITE_P(IntAndTerm, Signal, testing::Values(SIGINT, SIGTERM));

}  // namespace
}  // namespace hyperrun::control

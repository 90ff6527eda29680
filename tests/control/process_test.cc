#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <future>
#include <thread>

#include "runtime/base/error.h"
#include "runtime/process/child_process.h"
#include "runtime/process/local_ranks.h"
#include "runtime/process/spawn.h"
#include "tests/control/fleet.h"

namespace hyperrun::control {
namespace {

using std::chrono::seconds;

TEST(ChildProcess, PassesOutputOnAndTellsTheEnd) {
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  std::promise<std::pair<int, std::string>> ended;
  process::ChildProcess child({"sh", "-c", "printf 'a\\nb'; printf \"$WORD\" >&2; exit 3"},
                              {{"WORD", "oops"}}, [&](const process::ExitStatus& s, const std::string& tail) {
                                ended.set_value({s.code, tail});
                              });
  auto future = ended.get_future();
  ASSERT_EQ(future.wait_for(seconds(10)), std::future_status::ready);
  EXPECT_EQ(future.get(), std::pair(3, std::string("oops")));
  EXPECT_EQ(child.wait_for(seconds(1))->describe(), "exit code 3");
  EXPECT_EQ(testing::internal::GetCapturedStdout(), "a\nb");
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "oops");
}

TEST(ChildProcess, ItsEndIsSeenThoughADescendantHoldsItsOutput) {
  process::ChildProcess child({"sh", "-c", "sleep 30 & exit 0"}, {});
  EXPECT_TRUE(child.wait_for(seconds(10)));
}

TEST(ChildProcess, IsKilledWithItsGroup) {
  const Stopwatch watch;
  {
    process::ChildProcess child({"sh", "-c", "trap '' TERM; echo ready >&2; sleep 30; sleep 30"}, {});
    while (child.stderr_tail().empty()) std::this_thread::yield();
    child.kill(SIGTERM);
    EXPECT_FALSE(child.wait_for(std::chrono::milliseconds(100)));
    child.kill_group(SIGKILL);
    const auto status = child.wait_for(seconds(10));
    ASSERT_TRUE(status);
    EXPECT_EQ(status->signal, SIGKILL);
    EXPECT_EQ(status->code, 137);
  }
  EXPECT_LT(watch.seconds(), 10);
}

TEST(ChildProcess, KeepsTheEndOfALongComplaint) {
  testing::internal::CaptureStderr();
  process::ChildProcess child(
      {"sh", "-c", "i=0; while [ $i -lt 2000 ]; do echo line $i; i=$((i+1)); done >&2"}, {});
  ASSERT_TRUE(child.wait_for(seconds(10)));
  const std::string all = testing::internal::GetCapturedStderr();
  EXPECT_EQ(all.size(), 18890u);  // 2000 lines, nothing lost
  EXPECT_EQ(child.stderr_tail(), all.substr(all.size() - 4096));
}

TEST(ChildProcess, AMissingProgramIsAnError) {
  try {
    process::ChildProcess child({"no-such-mpirun", "-np", "2"}, {});
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), Code::kMpi);
    EXPECT_THAT(e.what(), testing::HasSubstr("no-such-mpirun"));
  }
}

// A killed parent leaves no child behind.
TEST(ChildProcess, EndsWithTheProcessThatHasStartedIt) {
  const int parent = process::start_process({CONTROL_ACTOR, "parent"}, {}, {});
  process::LocalRanks children;
  children.add_launcher(parent, "");
  while (children.all().empty()) children.look();
  const int fd = pidfd_open(children.all().at(0).pid, 0);
  ASSERT_GE(fd, 0);
  kill(parent, SIGKILL);
  waitpid(parent, nullptr, 0);
  pollfd p{fd, POLLIN, 0};
  EXPECT_EQ(poll(&p, 1, 5000), 1);
  close(fd);
}

TEST(SpawnedController, TellsItsAddressAndEndsWithItsDevices) {
  const auto spawned = process::spawn_controller_process({CONTROL_ACTOR, "controller", "2"},
                                                         {{"HYPERRUN_SECRET", test_options(1).secret}});
  EXPECT_THAT(spawned.address, testing::StartsWith("127.0.0.1:"));
  Fleet fleet;
  fleet.start(0, 2, "fail", spawned.address);
  fleet.start(1, 2, "none", spawned.address);
  EXPECT_EQ(process::wait_for_controller(spawned, 10), static_cast<int>(ExitCode::kDiverged));
}

TEST(SpawnedController, IsOverWhenItEndsBeforeItTells) {
  EXPECT_THROW(process::spawn_controller_process({"true"}, {}), Error);
}

// No rank survives its controller, not even one whose main thread hangs.
TEST(SpawnedController, DevicesEndWhenItDies) {
  const auto spawned = process::spawn_controller_process({CONTROL_ACTOR, "controller", "2", "dies"},
                                                         {{"HYPERRUN_SECRET", test_options(1).secret}});
  Fleet fleet;
  fleet.start(0, 2, "none", spawned.address);
  fleet.start(1, 2, "stuck", spawned.address);
  EXPECT_EQ(process::wait_for_controller(spawned, 10), 137);
  const Stopwatch watch;
  EXPECT_EQ(fleet.wait(0, 5), static_cast<int>(exit_code(Code::kControl)));
  EXPECT_EQ(fleet.wait(1, 5), static_cast<int>(exit_code(Code::kControl)));
  EXPECT_LT(watch.seconds(), 5);
}

}  // namespace
}  // namespace hyperrun::control

#include "runtime/control/start_up.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <optional>

#include "runtime/process/process_start.h"

namespace hyperrun::control {
namespace {

// A rank that never joins. The test process is its launcher.
class SilentRank {
 public:
  explicit SilentRank(std::int32_t rank)
      : pid_(process::start_process({"sleep", "60"}, {{"OMPI_COMM_WORLD_RANK", std::to_string(rank)}}, {})) {}
  SilentRank(const SilentRank&) = delete;
  SilentRank& operator=(const SilentRank&) = delete;
  ~SilentRank() {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }

  int pid() const { return pid_; }
  // Ends the process; its pid is not reused until the test is over.
  void end() const {
    kill(pid_, SIGKILL);
    siginfo_t how{};
    ASSERT_EQ(waitid(P_PID, static_cast<id_t>(pid_), &how, WEXITED | WNOWAIT), 0);
  }

 private:
  int pid_;
};

// Two ranks that have been seen. There is no clock: the test calls each look.
struct Start {
  Start() {
    start_up.add_launcher(getpid(), "");
    look();
  }

  // Looks as at a tick; the timer itself is too late to matter to the test.
  void look() { start_up.begin({std::chrono::hours(1), {}}); }
  const Error& verdict_after(const FailureReport& launcher) {
    watch.note(launcher);
    while (!verdict) io.run_one();
    return *verdict;
  }
  std::string name(std::int32_t rank, const SilentRank& process) const {
    return name_of({rank, process::host_name(), process::machine_id(), process.pid(), ""});
  }

  SilentRank first{0}, second{1};
  asio::io_context io;
  Membership members{2, 2};
  std::optional<Error> verdict;
  Watch watch{
      io,
      members,
      {std::chrono::hours(1), {}},
      {[this](const Error& error) { verdict = error; }, [](int) {}, [](std::int32_t) { return Work{}; }}};
  StartUp start_up{io, members, watch, "nowhere"};
};

const FailureReport kLauncherEnded{Symptom::kLauncher, -1, "",
                                   Error(Code::kMpi, "exit code 7 | out of luck")};

// Like mpirun, the launcher ends the others and then itself, some time after the first has ended.
TEST(StartUp, HowARankEndedBeforeItJoinedIsToldByItsLauncher) {
  Start start;
  EXPECT_FALSE(start.watch.suspects_device());
  start.first.end();
  start.look();
  EXPECT_TRUE(start.watch.suspects_device());
  start.second.end();
  start.look();
  const Error& verdict = start.verdict_after(kLauncherEnded);
  EXPECT_EQ(verdict.code(), Code::kMpi);
  EXPECT_EQ(verdict.place(), start.name(0, start.first));
  EXPECT_EQ(verdict.cause(), "exit code 7 | out of luck");
}

TEST(StartUp, OfRanksThatEndBetweenTwoLooksAllAreNamed) {
  Start start;
  start.second.end();
  start.first.end();
  start.look();
  EXPECT_EQ(start.verdict_after(kLauncherEnded).place(),
            start.name(0, start.first) + " and " + start.name(1, start.second));
}

}  // namespace
}  // namespace hyperrun::control

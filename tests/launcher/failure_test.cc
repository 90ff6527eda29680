// Failures while a run is under way: it ends soon, says what happened, and leaves nothing behind.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <cstring>
#include <nlohmann/json.hpp>

#include "tests/launcher/results.h"
#include "tests/launcher/workspace.h"

namespace hyperrun::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr Seconds kHeartbeat(0.5);
constexpr Seconds kEnd(5);  // limit from the event, beyond the heartbeat

// The starter of the devices.
enum class By { kHyperrun, kMpirun };

class Failure : public ::testing::TestWithParam<By> {
 protected:
  void SetUp() override {
    std::vector<Edit> edits = further_edits();
    edits.insert(edits.end(),
                 {{"steps: 6", "steps: 1000000"},
                  {"directory: \"out\"", "directory: \"out\" heartbeat: \"500 ms\" checkpoint_every: 40"}});
    const std::string job = workspace_.job(edited(kJob, edits));
    run_ = workspace_.start(GetParam() == By::kHyperrun ? hyperrun({job}) : mpirun(2, {job}));
    ASSERT_TRUE(
        eventually([&] { return fs::exists(workspace_ / "out/checkpoints/step-000040"); }, Seconds(20)))
        << run_->err();
  }

  virtual std::vector<Edit> further_edits() const { return {}; }

  // Expects that the run ends in time after the event with this status, and leaves only its results.
  Finished expect_end(int status) { return expect_end(std::vector<int>{status}); }

  // Expects the end after a device was killed, by us or by the controller. mpirun's own status is that of the
  // first rank that ended: the killed one or one that was told to end.
  Finished expect_end_by_device(int status) {
    return GetParam() == By::kHyperrun ? expect_end(status)
                                       : expect_end(std::vector<int>{status, 128 + SIGKILL});
  }

  Finished expect_end(const std::vector<int>& legal) {
    const auto event = std::chrono::steady_clock::now();
    Finished f = run_->wait(Seconds(30));
    const Seconds time = std::chrono::steady_clock::now() - event;
    EXPECT_THAT(legal, Contains(f.status)) << f;
    EXPECT_LT(time.count(), (kHeartbeat + kEnd).count() * kSlowdown) << f;
    EXPECT_TRUE(workspace_.nothing_left());
    EXPECT_GE(occurrences(f.err, "\n  fix: "), occurrences(f.err, "error[")) << f;
    expect_whole_results();
    return f;
  }

  void expect_manifest(const std::string& state, const nlohmann::json& status) {
    const auto manifest = nlohmann::json::parse(content(workspace_ / "out/manifest.json"));
    EXPECT_EQ(manifest.at("state"), state);
    EXPECT_EQ(manifest.at("exit_status"), status);
  }

  // Ends the run by a signal to the starter. mpirun has a status of its own for that, stops its ranks with
  // SIGTERM, and may no longer pass on their output.
  void expect_interrupted(int signal) {
    const bool by_us = GetParam() == By::kHyperrun;
    const Finished f = expect_end(by_us ? 128 + signal : 1);
    const int told = by_us ? signal : SIGTERM;
    const std::string said = "interrupted by signal " + std::to_string(told) + " (" + strsignal(told) + ")";
    EXPECT_THAT(f.err, Not(HasSubstr("error["))) << f;
    EXPECT_TRUE(!by_us || f.err.find(said) != std::string::npos) << f;
    expect_manifest("interrupted", 128 + told);
    EXPECT_EQ(nlohmann::json::parse(content(workspace_ / "out/manifest.json")).at("error"), said);
  }

  Workspace workspace_;
  std::unique_ptr<Process> run_;

 private:
  void expect_whole_results() const {
    EXPECT_GE(losses(workspace_ / "out").size(), 40U);
    for (const auto& entry : fs::directory_iterator(workspace_ / "out/checkpoints")) {
      if (!entry.path().filename().string().starts_with("step-")) continue;
      for (const char* name :
           {"model.safetensors", "optimizer.safetensors", "hyperrun_state.json", "config.json"})
        EXPECT_TRUE(fs::exists(entry.path() / name)) << entry.path() / name;
    }
  }
};

TEST_P(Failure, KilledDevice) {
  kill(workspace_.device(1), SIGKILL);
  const Finished f = expect_end_by_device(8);
  EXPECT_THAT(f.err, AllOf(HasSubstr("device 1 ("), HasSubstr("error[device-lost]: lost: "),
                           HasSubstr("finished i")));
  EXPECT_EQ(occurrences(f.err, "error["), 1) << f;
  expect_manifest("failed", 8);
}

TEST_P(Failure, KilledDeviceZero) {
  kill(workspace_.device(0), SIGKILL);
  const Finished f = expect_end_by_device(8);
  EXPECT_THAT(f.err, AllOf(HasSubstr("device 0 ("), HasSubstr("error[device-lost]")));
  expect_manifest("failed", 8);
}

TEST_P(Failure, KilledDeviceGoesOnFromItsCheckpoint) {
  kill(workspace_.device(1), SIGKILL);
  const Finished f = expect_end_by_device(8);
  EXPECT_THAT(f.err, HasSubstr("start the job again with --resume " + (workspace_ / "out").string() + "\n"));
}

// The job has tensors in the pool, in all devices' shared memory, or in files on flash.
class FailureBeyondHbm : public Failure {
  std::vector<Edit> further_edits() const override {
    const std::string tier = GetParam() == By::kHyperrun ? "pool" : "flash";
    return {{"hbm: \"16 MiB\"", "hbm: \"1800 KiB\" " + tier + ": \"64 MiB\""},
            {"data {", "memory { policy: \"hyperoffload\" tier: \"" + tier + "\" }\ndata {"}};
  }
};

TEST_P(FailureBeyondHbm, KilledDevice) {
  kill(workspace_.device(1), SIGKILL);
  const Finished f = expect_end_by_device(8);
  EXPECT_THAT(f.err, AllOf(HasSubstr("device 1 ("), HasSubstr("error[device-lost]")));
  expect_manifest("failed", 8);
  for (const auto& entry : fs::recursive_directory_iterator(workspace_ / "out"))
    EXPECT_THAT(entry.path().filename().string(), Not(HasSubstr("flash")));
}

TEST_P(Failure, StoppedDevice) {
  kill(workspace_.device(1), SIGSTOP);
  const Finished f = expect_end_by_device(9);
  EXPECT_THAT(f.err,
              AllOf(HasSubstr("device 1 ("), HasSubstr("error[device-hung]: hung: no heartbeat for 0.5 s"),
                    HasSubstr("finished i")));
  EXPECT_EQ(occurrences(f.err, "error["), 1) << f;
  expect_manifest("failed", 9);
}

TEST_P(Failure, Interrupted) {
  run_->signal(SIGINT);
  expect_interrupted(SIGINT);
}

TEST_P(Failure, InterruptedFromTheTerminal) {
  run_->signal_group(SIGINT);
  expect_interrupted(SIGINT);
}

TEST_P(Failure, Terminated) {
  run_->signal(SIGTERM);
  expect_interrupted(SIGTERM);
}

TEST_P(Failure, KilledStarter) {
  run_->signal(SIGKILL);
  expect_end(128 + SIGKILL);
  // The controller of a foreign mpirun survives it, with no devices left.
  if (GetParam() == By::kMpirun) expect_manifest("failed", 8);
}

void PrintTo(By by, std::ostream* stream) { *stream << (by == By::kHyperrun ? "hyperrun" : "mpirun"); }

std::string name_of(const ::testing::TestParamInfo<By>& info) {
  return info.param == By::kHyperrun ? "Hyperrun" : "Mpirun";
}

INSTANTIATE_TEST_SUITE_P(By, Failure, ::testing::Values(By::kHyperrun, By::kMpirun), name_of);
INSTANTIATE_TEST_SUITE_P(By, FailureBeyondHbm, ::testing::Values(By::kHyperrun, By::kMpirun), name_of);

using ForeignFailure = Failure;

TEST_P(ForeignFailure, KilledController) {
  kill(workspace_.controller(), SIGKILL);
  const Finished f = expect_end(5);
  EXPECT_THAT(f.err, HasSubstr("device 0: error[control]: the controller is gone"));
}

INSTANTIATE_TEST_SUITE_P(By, ForeignFailure, ::testing::Values(By::kMpirun), name_of);

// Kills from the first moment that mpirun or a rank exists, during the start.
class StartingUp : public ::testing::Test {
 protected:
  void SetUp() override {
    const std::string job =
        workspace_.job(edited(kJob, {{"steps: 6", "steps: 1000000"},
                                     {"directory: \"out\"", "directory: \"out\" heartbeat: \"500 ms\""}}));
    run_ = workspace_.start(hyperrun({job}));
  }

  pid_t wait_for_device(int rank) {
    pid_t pid = 0;
    EXPECT_TRUE(eventually([&] { return (pid = workspace_.device(rank)) != 0; }, Seconds(20))) << run_->err();
    return pid;
  }

  void expect_nothing_left_of_the_killed() {
    run_->signal(SIGKILL);
    EXPECT_TRUE(workspace_.nothing_left(kEnd));
  }

  Workspace workspace_;
  std::unique_ptr<Process> run_;
};

TEST_F(StartingUp, KilledWithMpirunAlone) {
  ASSERT_TRUE(eventually([&] { return workspace_.processes().size() > 1; }, Seconds(20))) << run_->err();
  expect_nothing_left_of_the_killed();
}

TEST_F(StartingUp, KilledWithTheFirstRank) {
  wait_for_device(0);
  expect_nothing_left_of_the_killed();
}

TEST_F(StartingUp, KilledWithTheLastRank) {
  wait_for_device(1);
  expect_nothing_left_of_the_killed();
}

// It is chance whether the rank had joined and was seen before; it alone must be blamed. If it is known to be
// lost, the other's not having joined yet is no blame.
TEST_F(StartingUp, ARankThatIsKilledIsNamed) {
  kill(wait_for_device(1), SIGKILL);
  const auto event = std::chrono::steady_clock::now();
  const Finished f = run_->wait(Seconds(30));
  const Seconds time = std::chrono::steady_clock::now() - event;
  EXPECT_THAT((std::vector<int>{5, 8}), Contains(f.status)) << f;
  EXPECT_LT(time.count(), kEnd.count() * kSlowdown) << f;
  EXPECT_THAT(f.err, HasSubstr("device 1"));
  std::string blamed = f.err.substr(0, f.err.find("\n  the others:"));
  if (f.status == 8) blamed = blamed.substr(0, blamed.find("\n  had not joined:"));
  EXPECT_THAT(blamed, Not(HasSubstr("device 0"))) << f;
  EXPECT_EQ(occurrences(f.err, "error["), 1) << f;
  EXPECT_TRUE(workspace_.nothing_left());
}

// There is no checkpoint to continue from: the error says how to have one next time.
TEST(WithoutACheckpoint, AKilledDeviceSaysWhatToSet) {
  for (const auto& [every, said] :
       {std::pair<std::string, std::string>{
            "",
            "there is no checkpoint to go on from; for one every 100000 steps, "
            "in run: checkpoint_every: 100000\n"},
        {" checkpoint_every: 900000", "its first checkpoint was to come after step 900000\n"}}) {
    const Workspace workspace;
    const std::string job = workspace.job(
        edited(kJob, {{"steps: 6", "steps: 1000000"}, {"directory: \"out\"", "directory: \"out\"" + every}}));
    const auto run = workspace.start(hyperrun({job}));
    ASSERT_TRUE(eventually(
        [&] { return fs::exists(workspace / "out/metrics.jsonl") && !losses(workspace / "out").empty(); },
        Seconds(20)))
        << run->err();
    kill(workspace.device(1), SIGKILL);
    const Finished f = run->wait(Seconds(30));
    EXPECT_EQ(f.status, 8) << f;
    EXPECT_THAT(f.err, AllOf(HasSubstr(said), Not(HasSubstr("--resume"))));
    EXPECT_TRUE(workspace.nothing_left());
  }
}

TEST(Diverging, EndsWithItsStepAndNoCheckpoint) {
  for (const By by : {By::kHyperrun, By::kMpirun}) {
    const Workspace workspace;
    const std::string job = workspace.job(edited(kJob, {{"lr: 3e-3", "lr: 3e9"}}));
    const Finished f = workspace.run(by == By::kHyperrun ? hyperrun({job}) : mpirun(2, {job}));
    EXPECT_EQ(f.status, 10) << f;
    EXPECT_THAT(f.err, AllOf(HasSubstr("step 2: error[not-finite]"), HasSubstr("fix: lower training.lr")));
    EXPECT_EQ(occurrences(f.err, "error["), 1) << f;
    EXPECT_FALSE(fs::exists(workspace / "out/checkpoints"));
    EXPECT_EQ(nlohmann::json::parse(content(workspace / "out/manifest.json")).at("exit_status"), 10);
    EXPECT_TRUE(workspace.nothing_left());
  }
}

TEST(Unwritable, TheLastCheckpointThatCannotBeWrittenIsAnError) {
  const Workspace workspace;
  const std::string job =
      workspace.job(edited(kJob, {{"steps: 6", "steps: 900"},
                                  {"directory: \"out\"", "directory: \"out\" checkpoint_every: 200"}}));
  const auto run = workspace.start(hyperrun({job}));
  ASSERT_TRUE(eventually([&] { return fs::exists(workspace / "out/metrics.jsonl"); }, Seconds(20)));
  put_file(workspace / "out/checkpoints", "in the way");
  const Finished f = run->wait(Seconds(30));
  EXPECT_EQ(f.status, 7) << f;
  EXPECT_THAT(f.err, AllOf(HasSubstr("step-000800: not saved, the run goes on"), HasSubstr("out/checkpoints"),
                           HasSubstr("error[unwritable]")));
  EXPECT_TRUE(workspace.nothing_left());
}

// A limit on the size of files ends no process without a word.
TEST(Unwritable, ACheckpointBeyondTheLimitOfFileSizesEndsTheRunWithItsName) {
  const Workspace workspace;
  const std::string job =
      workspace.job(edited(kJob, {{"hidden: 64", "hidden: 384"},
                                  {"devices: 2 hbm: \"16 MiB\"", "devices: 1 hbm: \"256 MiB\""},
                                  {"size: 2", "size: 1"},
                                  {"directory: \"out\"", "directory: \"out\" checkpoint_every: 2"}}));
  const auto run = [&](const std::string& bytes) {
    Command limited{"prlimit", "--fsize=" + bytes};
    const Command command = hyperrun({job});
    limited.insert(limited.end(), command.begin(), command.end());
    return workspace.run(limited);
  };
  const Finished checkpoint = run("6000000");
  EXPECT_EQ(checkpoint.status, 7) << checkpoint;
  EXPECT_THAT(checkpoint.err,
              AllOf(HasSubstr("/model.safetensors: error[unwritable]: cannot reserve "),
                    HasSubstr(": File too large\n  fix: raise the limit on the size of files")));
  EXPECT_TRUE(workspace.nothing_left());
  const Finished shared_memory = run("100000");
  EXPECT_EQ(shared_memory.status, 7) << shared_memory;
  EXPECT_THAT(shared_memory.err,
              HasSubstr("job.textproto:2:13: error[unwritable]: shared memory takes a file of "));
}

}  // namespace
}  // namespace hyperrun::testing

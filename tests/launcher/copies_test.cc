// Copies of the state in memory: a run that loses a device goes on from the last one, and no end of a run
// leaves any behind.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <functional>

#include "tests/launcher/results.h"
#include "tests/launcher/workspace.h"

namespace hyperrun::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

// Folders that hold a whole copy.
std::vector<fs::path> copies() {
  std::vector<fs::path> folders;
  std::error_code gone;
  for (const auto& entry : fs::directory_iterator("/dev/shm", gone))
    if (entry.path().filename().string().starts_with("hyperrun-copies."))
      for (const auto& copy : fs::directory_iterator(entry.path() / "checkpoints", gone))
        if (copy.path().filename().string().starts_with("step-")) {
          folders.push_back(entry.path());
          break;
        }
  return folders;
}

std::string saved(const fs::path& run, const std::string& step, const char* file) {
  return content(run / "checkpoints" / step / file);
}

// Whether no thread of the process runs any more. A signal to stop takes effect when its threads next run.
bool has_stopped(pid_t pid) {
  std::error_code gone;
  for (const auto& task : fs::directory_iterator("/proc/" + std::to_string(pid) + "/task", gone)) {
    const std::string stat = content(task.path() / "stat");
    const std::size_t state = stat.rfind(')') + 2;
    if (state < stat.size() && stat[state] != 'T' && stat[state] != 'Z') return false;
  }
  return true;
}

// A run that copies each step and saves none on the way, with a fault.
std::string copying(const std::string& fault) {
  const std::string chaos = fault.empty() ? "" : " chaos { fault { " + fault + " } }";
  return edited(kJob, {{"directory: \"out\" restarts: 0", "directory: \"out\" copy_every: 1" + chaos}});
}

TEST(Copies, ALostDeviceCostsNoStepAndNoBit) {
  const Workspace workspace;
  ASSERT_THAT(workspace.run_on_job("run", kJob, {"--run-dir", "undisturbed"}), Succeeded());
  for (const char* device : {"0", "1"}) {
    const std::string directory = std::string("lost-") + device;
    const Finished f = workspace.run_on_job(
        "run", copying(std::string("kind: \"kill\" step: 5 device: ") + device), {"--run-dir", directory});
    ASSERT_THAT(f, Succeeded());
    EXPECT_THAT(f.err, HasSubstr("restart 1 of 3 after step 4, from the checkpoint after step ")) << f;
    for (const char* file : {"model.safetensors", "optimizer.safetensors", "hyperrun_state.json"})
      EXPECT_EQ(saved(workspace / directory, "step-000006", file),
                saved(workspace / "undisturbed", "step-000006", file));
    EXPECT_TRUE(workspace.nothing_left());
  }
}

// The ranks end by themselves when hyperrun is gone, and take the copies with them.
TEST(Copies, GoWithARunThatIsKilled) {
  const Workspace workspace;
  const std::string job = workspace.job(edited(copying(""), {{"steps: 6", "steps: 1000000"}}));
  const std::unique_ptr<Process> run = workspace.start(hyperrun({job}));
  ASSERT_TRUE(eventually([] { return !copies().empty(); }, Seconds(20))) << run->err();
  run->signal(SIGKILL);
  run->wait(Seconds(30));
  EXPECT_TRUE(workspace.nothing_left(Seconds(10)));
}

// What nobody could remove goes when the next run starts.
TEST(Copies, OfKilledProcessesAreRemovedByTheNextRun) {
  const Workspace workspace;
  const std::string job = workspace.job(edited(copying(""), {{"steps: 6", "steps: 1000000"}}));
  const std::unique_ptr<Process> run = workspace.start(hyperrun({job}));
  ASSERT_TRUE(eventually([] { return !copies().empty(); }, Seconds(20))) << run->err();
  std::vector<pid_t> processes = workspace.processes();
  for (const pid_t pid : processes) kill(pid, SIGSTOP);
  ASSERT_TRUE(eventually([&] { return std::ranges::all_of(processes, has_stopped); }, Seconds(10)));
  // Children come first: the kernel continues stopped ones whose parent has ended (SIGHUP, SIGCONT).
  std::ranges::sort(processes, std::greater());
  for (const pid_t pid : processes) kill(pid, SIGKILL);
  run->wait(Seconds(30));
  ASSERT_TRUE(eventually([&] { return workspace.processes().empty(); }, Seconds(10)));
  const std::vector<fs::path> left = copies();
  EXPECT_FALSE(left.empty());
  EXPECT_THAT(workspace.run_on_job("run", kJob, {"--run-dir", "next"}), Succeeded());
  for (const fs::path& folder : left) EXPECT_FALSE(fs::exists(folder)) << folder;
}

TEST(Copies, LastCheckpointsStay) {
  const Workspace workspace;
  const std::string job = edited(kJob, {{"directory: \"out\"",
                                         "directory: \"out\" checkpoint_every: 1 "
                                         "keep_last: 1 keep_every: 3"}});
  ASSERT_THAT(workspace.run_on_job("run", job), Succeeded());
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(workspace / "out/checkpoints"))
    names.push_back(entry.path().filename());
  EXPECT_THAT(names, ::testing::UnorderedElementsAre("step-000003", "step-000006"));
}

// On a full disk the run goes on without the checkpoint; only the last one is missed.
TEST(Copies, AFullDiskCostsCheckpointsOnly) {
  const Workspace workspace;
  const std::string disk = (workspace / "disk").string();
  fs::create_directory(disk);
  if (workspace.run(with_disk(disk, 64, {"true"})).status != 0)
    GTEST_SKIP() << "no namespace can be made here";
  const std::string job =
      workspace.job(edited(kJob, {{"directory: \"out\"", "directory: \"disk/out\" checkpoint_every: 2"}}));
  // A checkpoint takes 1.8 MiB.
  const Finished f = workspace.run(with_disk(disk, 3 << 10, hyperrun({job})));
  EXPECT_EQ(f.status, 7) << f;
  EXPECT_THAT(f.err, HasSubstr("step-000004: not saved, the run goes on: ")) << f;
  EXPECT_THAT(f.err, HasSubstr("error[unwritable]")) << f;
  EXPECT_TRUE(workspace.nothing_left());
}

}  // namespace
}  // namespace hyperrun::testing

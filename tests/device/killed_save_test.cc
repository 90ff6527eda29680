// A process that is killed at any of the system calls with which it saves leaves whole checkpoints alone: the
// old one, the new one, or both.
#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <filesystem>
#include <map>
#include <memory>

#include "runtime/device/state_saver.h"
#include "runtime/model/checkpoint/files.h"
#include "tests/support/in_process_run.h"
#include "tests/support/jobs.h"
#include "tests/support/temporary_directory.h"

namespace {

std::atomic<bool> counting{false};
std::atomic<int> calls{0};
std::atomic<int> fatal{0};  // number of the call that kills the process; 0: none

bool is_fatal() { return counting && ++calls == fatal; }
void die() { kill(getpid(), SIGKILL); }

template <class Function>
Function* real(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

}  // namespace

// The calls that change files, in place of those of the C library. A write that kills writes a half before.
extern "C" {
ssize_t pwrite(int fd, const void* data, size_t bytes, off_t at) {
  static auto* const next = real<ssize_t(int, const void*, size_t, off_t)>("pwrite");
  if (!is_fatal()) return next(fd, data, bytes, at);
  next(fd, data, bytes / 2, at);
  die();
  return -1;
}
int posix_fallocate(int fd, off_t at, off_t bytes) {
  static auto* const next = real<int(int, off_t, off_t)>("posix_fallocate");
  if (is_fatal()) die();
  return next(fd, at, bytes);
}
int fsync(int fd) {
  static auto* const next = real<int(int)>("fsync");
  if (is_fatal()) die();
  return next(fd);
}
int rename(const char* from, const char* to) noexcept {
  static auto* const next = real<int(const char*, const char*)>("rename");
  if (is_fatal()) die();
  return next(from, to);
}
int mkdir(const char* path, mode_t mode) noexcept {
  static auto* const next = real<int(const char*, mode_t)>("mkdir");
  if (is_fatal()) die();
  return next(path, mode);
}
int unlinkat(int directory, const char* path, int flags) noexcept {
  static auto* const next = real<int(int, const char*, int)>("unlinkat");
  if (is_fatal()) die();
  return next(directory, path, flags);
}
}

namespace hyperrun::testing {
namespace {

namespace fs = std::filesystem;
using Contents = std::map<std::string, std::string>;

Contents contents(const fs::path& folder) {
  Contents files;
  for (const auto& entry : fs::directory_iterator(folder))
    files[entry.path().filename()] = content(entry.path());
  return files;
}

// A run of three steps, of which the first has been saved. It saves the second beside the third, and waits
// for the last, for which the others go. Copies stay in memory as well.
class KilledSave : public ::testing::Test {
 protected:
  KilledSave() {
    // Its checkpoint is that large that a file takes several writes.
    job_.model.hidden = 256, job_.model.ffn = 1024;
    job_.supernode.hbm = Bytes(std::int64_t{256} << 20);
    job_.training.steps = 3;
    fs::create_directories(shm());
  }

  static Unsplit unsplit(std::int64_t step) {
    return {.trainer = {.next_step = step, .seed = 7}, .files = {{"config.json", "{}"}}};
  }
  fs::path shm() const { return directory_ / "shm"; }
  fs::path copies() const { return copies_folder("/run", "", shm()) / "checkpoints"; }
  fs::path disk() const { return directory_ / "checkpoints"; }

  void save_first_step() {
    run_in_process(job_, {.steps = 1, .beside_steps = [this](const StateContext& context) {
                            return [this, context](std::int64_t) {
                              save_state(context, disk() / checkpoint_name(1), unsplit(1));
                            };
                          }});
  }

  void save_the_others() {
    RunOptions run{.load_from = (disk() / checkpoint_name(1)).string(), .first_step = 1};
    run.beside_steps = [this](const StateContext& context) {
      counting = true;
      const SaverOptions options{.copies = copies().parent_path(), .keeps_copies = true, .kept = {.last = 1}};
      const auto saver = std::make_shared<StateSaver>(context, options);
      return [=, this](std::int64_t step) {
        saver->save({disk() / checkpoint_name(step + 1)}, unsplit(step + 1),
                    step == 2 ? StateSaver::Return::kOnceWritten : StateSaver::Return::kOnceCopied);
      };
    };
    run_in_process(job_, run);
  }

  // The same in a process that is killed at its n-th call; 0: never. Returns true if it was killed.
  bool killed_at(int n) {
    const pid_t child = fork();
    if (child == 0) {
      fatal = n;
      save_the_others();
      _exit(0);
    }
    int status = 0;
    waitpid(child, &status, 0);
    EXPECT_TRUE(WIFSIGNALED(status) ? WTERMSIG(status) == SIGKILL : WEXITSTATUS(status) == 0) << n;
    return WIFSIGNALED(status);
  }

  // Expects that all checkpoints in a folder are whole, and that nothing else stays. Returns their steps.
  std::vector<std::int64_t> whole_ones(const fs::path& folder, int n) {
    remove_unfinished(folder, "step-");
    std::vector<std::int64_t> steps;
    std::error_code absent;
    for (const auto& entry : fs::directory_iterator(folder, absent)) {
      const std::int64_t step = saved_step(entry.path());
      if (step < 0 && entry.path().filename().string().starts_with(".slot-")) continue;
      EXPECT_GE(step, 1) << entry.path() << " at call " << n;
      EXPECT_TRUE(contents(entry.path()) == whole_[step]) << entry.path() << " at call " << n;
      steps.push_back(step);
    }
    return steps;
  }

  TemporaryDirectory directory_;
  Job job_ = small_job(2, 1);
  std::map<std::int64_t, Contents> whole_;  // by step
};

TEST_F(KilledSave, LeavesWholeCheckpointsAtEachOfItsCalls) {
  save_first_step();
  fs::copy(disk(), directory_ / "first", fs::copy_options::recursive);
  whole_[1] = contents(disk() / checkpoint_name(1));
  const CopiesFolder held(copies().parent_path(), CopiesFolder::AtEnd::kRemove);
  ASSERT_FALSE(killed_at(0));
  for (std::int64_t step : {2, 3}) whole_[step] = contents(copies() / checkpoint_name(step));
  ASSERT_TRUE(contents(disk() / checkpoint_name(3)) == whole_[3]);
  ASSERT_GT(whole_[3]["optimizer.safetensors"].size(), std::size_t{8} << 20);

  int n = 0;
  bool killed = true;
  for (; killed; ++n) {
    fs::remove_all(disk());
    fs::remove_all(copies());
    fs::copy(directory_ / "first", disk(), fs::copy_options::recursive);
    killed = killed_at(n + 1);
    EXPECT_FALSE(whole_ones(disk(), n + 1).empty()) << "at call " << n + 1;
    whole_ones(copies(), n + 1);
  }
  EXPECT_GT(n, 60) << "all calls are counted";
}

}  // namespace
}  // namespace hyperrun::testing

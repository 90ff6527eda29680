// The folder of a run's copies goes with the run, however that ends.
#include "runtime/device/copies_folder.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <optional>

#include "tests/support/temporary_directory.h"

namespace hyperrun::testing {
namespace {

namespace fs = std::filesystem;
using AtEnd = CopiesFolder::AtEnd;

class Copies : public ::testing::Test {
 protected:
  fs::path shm() const { return directory_.path(); }
  fs::path of(const std::string& run) const { return copies_folder(run, "", shm()); }
  // A process that holds the folder, and is then killed.
  void killed_with(const fs::path& folder) {
    const pid_t child = fork();
    if (child == 0) {
      const CopiesFolder held(folder, AtEnd::kRemove);
      fs::create_directory(held.checkpoints());
      kill(getpid(), SIGKILL);
    }
    int status = 0;
    waitpid(child, &status, 0);
  }

  TemporaryDirectory directory_;
};

TEST_F(Copies, EachProgramOfARunHasAFolderOfItsOwn) {
  EXPECT_EQ(of("/a"), of("/a"));
  EXPECT_NE(of("/a"), of("/b"));
  EXPECT_NE(copies_folder("/a", "learner", shm()), of("/a"));
}

TEST_F(Copies, ARunRemovesItsFolderAtItsEnd) {
  {
    const CopiesFolder run(of("/a"), AtEnd::kRemove);
    fs::create_directory(run.checkpoints());
    { const CopiesFolder device(of("/a"), AtEnd::kRemoveIfLast); }
    EXPECT_TRUE(fs::exists(of("/a"))) << "the run still needs it";
  }
  EXPECT_FALSE(fs::exists(of("/a")));
  { const CopiesFolder device(of("/a"), AtEnd::kRemoveIfLast); }
  EXPECT_FALSE(fs::exists(of("/a"))) << "the last one";
}

TEST_F(Copies, OfAKilledRunAreRemovedByTheNext) {
  killed_with(of("/a"));
  const CopiesFolder living(of("/b"), AtEnd::kRemove);
  ASSERT_TRUE(fs::exists(of("/a")));
  remove_stale_copies(shm());
  EXPECT_FALSE(fs::exists(of("/a")));
  EXPECT_TRUE(fs::exists(of("/b")));
}

// A process that leaves removes the folder of a run that was killed, and no other.
TEST_F(Copies, AreLeftToARunThatLives) {
  std::optional<CopiesFolder> run;
  run.emplace(of("/a"), AtEnd::kRemove);
  const pid_t child = fork();
  if (child == 0) {
    const CopiesFolder device(of("/b"), AtEnd::kRemoveIfLast);
    fs::create_directory(device.checkpoints());
    // The child has the parent's lock, too, and lets go of its own alone.
    leave_copies(shm());
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_FALSE(fs::exists(of("/b")));
  EXPECT_TRUE(fs::exists(of("/a")));
}

// hyperrun is killed. The first device that ends removes the copies, though another one still holds them: it
// may be killed before it could.
TEST_F(Copies, AreRemovedByWhoFindsTheRunGone) {
  for (const bool run_lives : {true, false}) {
    std::optional<CopiesFolder> run;
    if (run_lives)
      run.emplace(of("/a"), AtEnd::kRemove);
    else
      killed_with(of("/a"));
    const CopiesFolder other(of("/a"), AtEnd::kRemoveIfLast);
    watch_copies(of("/a"));
    remove_copies_of_gone_runs(std::chrono::milliseconds(0));
    EXPECT_EQ(fs::exists(of("/a")), run_lives);
  }
}

}  // namespace
}  // namespace hyperrun::testing

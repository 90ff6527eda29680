#include "runtime/model/checkpoint/files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <memory>

#include "tests/support/errors.h"
#include "tests/support/temporary_directory.h"

namespace hyperrun {
namespace {

namespace fs = std::filesystem;

TEST(ReadFile, SaysWhatIsWrong) {
  const TemporaryDirectory dir;
  EXPECT_ERROR(read_file(dir / "absent", Code::kBadCheckpoint), Code::kMissingFile, "absent", "no such file");
  EXPECT_ERROR(read_file(dir / "absent/below", Code::kBadCheckpoint), Code::kMissingFile, "absent/below",
               "no such file");
  EXPECT_ERROR(read_file(dir.path(), Code::kBadCheckpoint), Code::kBadCheckpoint, dir.path().string(),
               "not a regular file");
  ASSERT_EQ(::mkfifo((dir / "pipe").c_str(), 0600), 0);
  EXPECT_ERROR(read_file(dir / "pipe", Code::kBadCheckpoint), Code::kBadCheckpoint, "pipe",
               "not a regular file");
}

TEST(AtomicFile, TakesPiecesInAnyOrderAndAppearsAtCommit) {
  const TemporaryDirectory dir;
  write_file(dir / "f", "old");
  {
    AtomicFile file(dir / "f", 6);
    file.write(3, std::as_bytes(std::span("def", 3)));
    file.write(0, std::as_bytes(std::span("abc", 3)));
    EXPECT_EQ(content(dir / "f"), "old");
    file.commit();
  }
  EXPECT_EQ(content(dir / "f"), "abcdef");
  EXPECT_EQ(dir.entries(), 1);
}

// Whole pages, the tail behind them, and pieces that no direct write takes.
TEST(AtomicFile, TakesPagesWithoutTheCache) {
  constexpr std::size_t kPage = 4096, kBytes = 5 * kPage + 100;
  struct alignas(kPage) Pages {
    char bytes[6 * kPage];
  };
  const auto pages = std::make_unique<Pages>();
  for (std::size_t i = 0; i < kBytes; ++i) pages->bytes[i] = static_cast<char>('a' + i % 23);
  const auto from = [&](std::size_t at, std::size_t n) {
    return std::as_bytes(std::span(pages->bytes).subspan(at, n));
  };
  const TemporaryDirectory dir;
  AtomicFile file(dir / "f", kBytes);
  file.write_pages(2 * kPage, from(2 * kPage, kBytes - 2 * kPage));
  file.write_pages(0, from(0, 10));
  file.write_pages(10, from(10, 2 * kPage - 10));
  file.commit();
  EXPECT_EQ(content(dir / "f"), std::string(pages->bytes, kBytes));
  EXPECT_EQ(dir.entries(), 1);
}

TEST(AtomicFile, WithoutCommitLeavesTheOldOneAndNothingElse) {
  const TemporaryDirectory dir;
  write_file(dir / "f", "old");
  { AtomicFile file(dir / "f", 100); }
  EXPECT_EQ(content(dir / "f"), "old");
  EXPECT_EQ(dir.entries(), 1);
}

TEST(AtomicFile, UnwritablePlaces) {
  const TemporaryDirectory dir;
  write_file(dir / "f", "");
  EXPECT_ERROR(write_file(dir / "f/below", "x"), Code::kUnwritable, "f/below", "Not a directory");
  EXPECT_ERROR(write_file(dir / "absent/f", "x"), Code::kUnwritable, "absent/f", "No such file");
  fs::create_directory(dir / "d");
  EXPECT_ERROR(write_file(dir / "d", "x"), Code::kUnwritable, "/d", "Is a directory");
  // A size beyond any disk is refused before a byte is written.
  EXPECT_ERROR(AtomicFile(dir / "huge", std::int64_t{1} << 60), Code::kUnwritable, "huge", "reserve");
  EXPECT_EQ(dir.entries(), 2);
}

TEST(AtomicDirectory, AppearsWholeAtCommit) {
  const TemporaryDirectory dir;
  AtomicDirectory out(dir / "parent/step-10/");
  write_file(out.path() / "a", "1");
  fs::create_directory(out.path() / "sub");
  write_file(out.path() / "sub/b", "2");
  EXPECT_FALSE(fs::exists(dir / "parent/step-10"));
  out.commit();
  EXPECT_EQ(content(dir / "parent/step-10/a"), "1");
  EXPECT_EQ(content(dir / "parent/step-10/sub/b"), "2");
}

TEST(AtomicDirectory, ReplacesAnOlderOneCompletely) {
  const TemporaryDirectory dir;
  for (const std::string version : {"1", "2"}) {
    AtomicDirectory out(dir / "c");
    write_file(out.path() / ("only-" + version), version);
    out.commit();
  }
  EXPECT_FALSE(fs::exists(dir / "c/only-1"));
  EXPECT_EQ(content(dir / "c/only-2"), "2");
  EXPECT_EQ(dir.entries(), 1);
}

TEST(AtomicDirectory, WithoutCommitLeavesTheOldOne) {
  const TemporaryDirectory dir;
  fs::create_directory(dir / "c");
  write_file(dir / "c/kept", "x");
  {
    AtomicDirectory out(dir / "c");
    write_file(out.path() / "new", "y");
  }
  EXPECT_EQ(content(dir / "c/kept"), "x");
  EXPECT_EQ(dir.entries(), 1);
}

TEST(AtomicDirectory, SecondWriterIsRefusedWhileTheFirstWrites) {
  const TemporaryDirectory dir;
  AtomicDirectory first(dir / "c");
  write_file(first.path() / "a", "1");
  EXPECT_ERROR(AtomicDirectory(dir / "c"), Code::kUnwritable, "/c", "another process");
  first.commit();
  EXPECT_EQ(content(dir / "c/a"), "1");
}

// A child is killed between two files; the directory stays as it was and the next writer succeeds.
TEST(AtomicDirectory, AKilledWriterLeavesTheOldOneAndTheNextCleansUp) {
  const TemporaryDirectory dir;
  fs::create_directory(dir / "c");
  write_file(dir / "c/kept", "x");
  const pid_t child = ::fork();
  if (child == 0) {
    AtomicDirectory out(dir / "c");
    write_file(out.path() / "half", "y");
    ::raise(SIGKILL);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFSIGNALED(status));
  EXPECT_EQ(content(dir / "c/kept"), "x");
  EXPECT_EQ(dir.entries(), 2);

  AtomicDirectory out(dir / "c");
  EXPECT_TRUE(fs::is_empty(out.path()));
  out.commit();
  EXPECT_TRUE(fs::is_empty(dir / "c"));
  EXPECT_EQ(dir.entries(), 1);
}

TEST(AtomicDirectory, RecoversFromAKillBetweenTwoRenames) {
  const TemporaryDirectory dir;
  fs::create_directory(dir / ".c.old");
  write_file(dir / ".c.old/kept", "x");
  recover_directory(dir / "c");
  EXPECT_EQ(content(dir / "c/kept"), "x");
  recover_directory(dir / "c");
  EXPECT_EQ(content(dir / "c/kept"), "x");
}

TEST(AtomicDirectory, OnlyWhatNobodyIsWritingIsUnfinished) {
  const TemporaryDirectory dir;
  for (const char* name : {".step-1.partial", ".other.partial", ".step-2", "step-3"}) {
    fs::create_directory(dir / name);
    write_file(dir / name / "half", "y");
  }
  const AtomicDirectory living(dir / "step-4");
  remove_unfinished(dir.path(), "step-");
  EXPECT_FALSE(fs::exists(dir / ".step-1.partial"));
  EXPECT_EQ(dir.entries(), 4) << "a writer's, another name, another ending, a whole one";
  remove_unfinished(dir / "not there", "step-");
}

TEST(AtomicDirectory, UnwritablePlaces) {
  const TemporaryDirectory dir;
  write_file(dir / "f", "");
  EXPECT_ERROR(AtomicDirectory(dir / "f"), Code::kUnwritable, "/f", "not a directory");
  EXPECT_ERROR(AtomicDirectory(dir / "f/c"), Code::kUnwritable, "f/c", "cannot create");
}

}  // namespace
}  // namespace hyperrun

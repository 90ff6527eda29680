// Reads and writes of a file, with and without io_uring.
#include "memory/file_queue.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cerrno>
#include <vector>

#include "tests/support/temporary_directory.h"

namespace hyperrun {
namespace {

class Files : public ::testing::TestWithParam<Queued> {
 protected:
  void SetUp() override { ASSERT_GE(file_, 0); }
  ~Files() override { close(file_); }

  static std::vector<std::byte> page(int seed) {
    std::vector<std::byte> list(4096);
    for (std::size_t i = 0; i < list.size(); ++i)
      list[i] = static_cast<std::byte>(i * 7 + static_cast<std::size_t>(seed) * 31);
    return list;
  }

  TemporaryDirectory folder_;
  int file_ = open((folder_ / "f").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
};
INSTANTIATE_TEST_SUITE_P(All, Files, ::testing::Values(Queued::kWherePossible, Queued::kNever));

TEST_P(Files, AreInFlightTogetherAndEndInAnyOrder) {
  FileQueue queue(file_, GetParam());
  if (GetParam() == Queued::kWherePossible && !queue.queued()) GTEST_SKIP() << "the kernel has no io_uring";
  std::vector<std::vector<std::byte>> pages;
  for (int i = 0; i < 4; ++i) pages.push_back(page(i));
  for (std::size_t i = 0; i < 4; ++i)
    queue.begin_write(i, pages[i].data(), 4096, static_cast<std::int64_t>(3 - i) * 4096);
  for (const std::size_t i : {2U, 0U, 3U, 1U}) EXPECT_EQ(queue.finish(i), 4096);
  std::vector<std::byte> back(4 * 4096);
  for (std::size_t i = 0; i < 4; ++i)
    queue.begin_read(i, back.data() + i * 4096, 4096, static_cast<std::int64_t>(i) * 4096);
  for (const std::size_t i : {1U, 3U, 0U, 2U}) EXPECT_EQ(queue.finish(i), 4096);
  for (std::size_t i = 0; i < 4; ++i)
    EXPECT_TRUE(std::equal(pages[i].begin(), pages[i].end(), back.begin() + static_cast<long>(3 - i) * 4096));
}

TEST_P(Files, MoveNoMoreThanTheFileHas) {
  FileQueue queue(file_, GetParam());
  ASSERT_EQ(ftruncate(file_, 6000), 0);
  std::vector<std::byte> back(8192);
  queue.begin_read(0, back.data(), 8192, 0);
  EXPECT_EQ(queue.finish(0), 6000);
  queue.begin_read(0, back.data(), 8192, 10000);
  EXPECT_EQ(queue.finish(0), 0);
}

TEST_P(Files, ReturnErrors) {
  const int only_read = open((folder_ / "f").c_str(), O_RDONLY | O_CLOEXEC);
  {
    FileQueue queue(only_read, GetParam());
    const auto bytes = page(1);
    queue.begin_write(1, bytes.data(), 4096, 0);
    EXPECT_EQ(queue.finish(1), -EBADF);
    queue.begin_write(1, bytes.data(), 4096, 0);  // the destructor waits for it
  }
  close(only_read);
}

}  // namespace
}  // namespace hyperrun

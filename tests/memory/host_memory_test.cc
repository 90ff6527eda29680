#include "memory/host_memory.h"

#include <gtest/gtest.h>

#include <fstream>

#include "tests/support/temporary_directory.h"

namespace hyperrun {
namespace {

void put(const std::filesystem::path& file, const std::string& text) { std::ofstream(file) << text; }

TEST(AvailableMemory, IsAPartOfTheHosts) {
  EXPECT_GT(available_memory(), Bytes(0));
  EXPECT_LE(available_memory(), host_memory());
}

TEST(AvailableMemory, OfAGroupIsItsLimitWithoutWhatIsUsed) {
  const TemporaryDirectory group;
  EXPECT_EQ(left_in_group(group.path()), Bytes(INT64_MAX)) << "no group at all";
  put(group.path() / "memory.max", "max\n");
  put(group.path() / "memory.current", "3145728\n");
  EXPECT_EQ(left_in_group(group.path()), Bytes(INT64_MAX)) << "no limit";
  put(group.path() / "memory.max", "8388608\n");
  EXPECT_EQ(left_in_group(group.path()), kMiB * 5);
  put(group.path() / "memory.stat", "anon 2097152\ninactive_file 1048576\n");
  EXPECT_EQ(left_in_group(group.path()), kMiB * 6) << "the cache of files can be dropped";
  put(group.path() / "memory.current", "9437184\n");
  EXPECT_EQ(left_in_group(group.path()), Bytes(0));
}

// A batch system limits the job, and not each of its tasks.
TEST(AvailableMemory, OfAGroupIsAlsoLimitedByThoseAroundIt) {
  const TemporaryDirectory root;
  std::filesystem::create_directories(root.path() / "job/task");
  put(root.path() / "job/memory.max", "8388608\n");
  put(root.path() / "job/memory.current", "1048576\n");
  put(root.path() / "job/task/memory.max", "max\n");
  put(root.path() / "job/task/memory.current", "1048576\n");
  EXPECT_EQ(left_in_groups(root.path(), "job/task"), kMiB * 7);
  EXPECT_EQ(left_in_groups(root.path(), "elsewhere"), Bytes(INT64_MAX));
}

TEST(AvailableMemory, OfAGroupOfTheFirstVersion) {
  const TemporaryDirectory group;
  put(group.path() / "memory.limit_in_bytes", "8388608\n");
  put(group.path() / "memory.usage_in_bytes", "3145728\n");
  put(group.path() / "memory.stat", "inactive_file 5\ntotal_inactive_file 1048576\n");
  EXPECT_EQ(left_in_group(group.path()), kMiB * 6);
}

}  // namespace
}  // namespace hyperrun

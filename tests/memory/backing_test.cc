// Files on flash: bytes come back unchanged, or an error says why not.
#include "memory/backing.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <span>
#include <vector>

#include "runtime/base/error.h"
#include "tests/support/errors.h"
#include "tests/support/small_files.h"
#include "tests/support/temporary_directory.h"

namespace hyperrun {
namespace {

std::vector<std::byte> bytes_of(std::size_t n, unsigned seed) {
  std::vector<std::byte> list(n);
  for (std::size_t i = 0; i < n; ++i) list[i] = static_cast<std::byte>((i * 2654435761U + seed) >> 13);
  return list;
}

class Flash : public ::testing::Test {
 protected:
  void write(Bytes offset, const std::vector<std::byte>& bytes) { flash_.write(offset, bytes); }
  std::vector<std::byte> read(Bytes offset, std::size_t n) {
    std::vector<std::byte> list(n);
    flash_.read(offset, list);
    return list;
  }
  std::string refusal(Bytes offset, std::size_t n) {
    try {
      read(offset, n);
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), Code::kBadFlash);
      return e.cause();
    }
    return "";
  }

  // Six and a half pieces, more than are in flight at once, and some bytes.
  static constexpr std::size_t kLarge = (std::size_t{13} << 19) + 24;
  TemporaryDirectory folder_;
  FlashBacking flash_{folder_.path(), Bytes(16 << 20)};
};

TEST_F(Flash, ReadsTheBytesThatWereWritten) {
  const auto a = bytes_of(kLarge, 1), b = bytes_of(100, 2);
  write(Bytes(4096), a);
  write(Bytes(8 << 20), b);
  EXPECT_EQ(read(Bytes(4096), a.size()), a);
  EXPECT_EQ(read(Bytes(8 << 20), b.size()), b);
  EXPECT_EQ(read(Bytes(8192), 4096), std::vector(a.begin() + 4096, a.begin() + 8192)) << "a part of it";
}

TEST_F(Flash, TheLastWriteCounts) {
  write(Bytes(0), bytes_of(kLarge, 1));
  const auto over = bytes_of(6000, 2);
  write(Bytes(4096), over);
  EXPECT_EQ(read(Bytes(4096), over.size()), over);
  EXPECT_EQ(read(Bytes(0), kLarge).size(), kLarge) << "whose first pages are of the last writer";
}

TEST_F(Flash, BytesThatTheDiskHasChangedAreRefused) {
  write(Bytes(0), bytes_of(kLarge, 1));
  std::vector<std::byte> page(3 * 4096);
  auto* aligned =
      reinterpret_cast<std::byte*>((reinterpret_cast<std::uintptr_t>(page.data()) + 4095) / 4096 * 4096);
  ASSERT_EQ(pwrite(flash_.file(), aligned, 4096, 1 << 20), 4096);
  EXPECT_THAT(refusal(Bytes(0), kLarge), ::testing::HasSubstr("is not what was brought there"));
  EXPECT_EQ(refusal(Bytes(0), std::size_t{1} << 20), "") << "the first piece is whole";
}

// State is an example: it is written in smaller pieces than it is read in.
TEST_F(Flash, ChangedBytesAreRefusedInWhateverPiecesTheyWereWritten) {
  const auto all = bytes_of(kLarge, 1);
  constexpr std::size_t kOther = 5 * 4096;
  for (std::size_t at = 0; at < all.size(); at += kOther) {
    const std::size_t n = std::min(kOther, all.size() - at);
    write(Bytes(static_cast<std::int64_t>(at)),
          {all.begin() + static_cast<std::ptrdiff_t>(at), all.begin() + static_cast<std::ptrdiff_t>(at + n)});
  }
  EXPECT_EQ(read(Bytes(0), kLarge), all);
  std::vector<std::byte> page(2 * 4096);
  auto* aligned =
      reinterpret_cast<std::byte*>((reinterpret_cast<std::uintptr_t>(page.data()) + 4095) / 4096 * 4096);
  ASSERT_EQ(pwrite(flash_.file(), aligned, 4096, 3 << 20), 4096);
  EXPECT_THAT(refusal(Bytes(0), kLarge), ::testing::HasSubstr("is not what was brought there"));
  EXPECT_THAT(refusal(Bytes(3 << 20), 8192), ::testing::HasSubstr("is not what was brought there"));
}

TEST_F(Flash, AFileThatIsCutShortIsRefused) {
  write(Bytes(0), bytes_of(kLarge, 1));
  ASSERT_EQ(ftruncate(flash_.file(), 8192), 0);
  EXPECT_THAT(refusal(Bytes(0), kLarge), ::testing::HasSubstr("shorter than what was brought there"));
}

TEST(FlashWithoutRoom, IsRefusedBeforeAnythingIsWritten) {
  const TemporaryDirectory folder;
  struct statvfs disk {};
  ASSERT_EQ(statvfs(folder.path().c_str(), &disk), 0);
  const auto room = static_cast<std::int64_t>(disk.f_bavail * disk.f_frsize);
  try {
    FlashBacking(folder.path(), Bytes(room + (std::int64_t{1} << 40)));
    ADD_FAILURE() << "it is said to have room";
  } catch (const Error& e) {
    EXPECT_THAT(std::string(e.what()), ::testing::HasSubstr(folder.path().string()));
    EXPECT_FALSE(e.remedy().empty());
  }
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

// A quarter of the free space is left for other users of the disk.
TEST(FlashWithoutRoom, IsRefusedForAllFilesTogether) {
  const TemporaryDirectory folder;
  struct statvfs disk {};
  ASSERT_EQ(statvfs(folder.path().c_str(), &disk), 0);
  const auto blocks = geteuid() == 0 ? disk.f_bfree : disk.f_bavail;  // reserved blocks are the superuser's
  const Bytes most(static_cast<std::int64_t>(blocks * disk.f_frsize / 4 * 3));
  const std::filesystem::path below = folder.path() / "not" / "there";
  const std::vector<Bytes> files{most, Bytes(0), most};
  EXPECT_NO_THROW(require_flash_room(below, std::span(files).first(2)));
  EXPECT_ERROR(require_flash_room(below, files), Code::kDoesNotFit, "not/there", "in 2 files together");
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

TEST(FlashWithoutRoom, BeyondTheLimitOfFileSizesIsRefused) {
  const TemporaryDirectory folder;
  const SmallFiles small(1 << 20);
  EXPECT_ERROR(FlashBacking(folder.path(), Bytes(2 << 20)), Code::kUnwritable, folder.path().string(),
               "File too large");
}

TEST(FlashWithoutRoom, IsRefusedWithoutAFolder) {
  const TemporaryDirectory folder;
  const std::filesystem::path file = folder.path() / "file";
  ASSERT_TRUE(std::ofstream(file) << "x");
  const std::vector<Bytes> page{kFlashPage}, nothing{Bytes(0)};
  EXPECT_ERROR(require_flash_room(file / "below", page), Code::kUnwritable, "file/below", "Not a directory");
  EXPECT_NO_THROW(require_flash_room(file / "below", nothing));
}

}  // namespace
}  // namespace hyperrun

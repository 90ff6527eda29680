#include "memory/arena.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cstring>
#include <memory>

#include "memory/host.h"
#include "memory/shared_window.h"
#include "runtime/base/error.h"
#include "tests/support/resident.h"

namespace hyperrun {
namespace {

using ::testing::Each;
using testing::page_bytes;
using testing::resident_pages;

TEST(Arena, IsExactlyTheBudget) {
  const auto arenas = make_in_process_arenas(1, Bytes(5001));
  const Arena& a = arenas[0];
  EXPECT_EQ(a.view(Bytes(0), Bytes(5001)).size(), 5001U);
  EXPECT_EQ(a.view(Bytes(5001), Bytes(0)).size(), 0U);
  EXPECT_THROW(a.view(Bytes(0), Bytes(5002)), Error);
  EXPECT_THROW(a.view(Bytes(5001), Bytes(1)), Error);
  EXPECT_THROW(a.view(Bytes(-1), Bytes(1)), Error);
  EXPECT_THROW(a.view(Bytes(INT64_MAX), Bytes(2)), Error);
  EXPECT_TRUE(a.contains(a.base() + 5000, Bytes(1)));
  EXPECT_FALSE(a.contains(a.base() + 5000, Bytes(2)));
  EXPECT_FALSE(a.contains(a.base() - 1, Bytes(1)));
}

TEST(Arena, PeersSeeEachOther) {
  auto arenas = make_in_process_arenas(3, kMiB);
  std::memset(arenas[2].base(), 7, 100);
  EXPECT_EQ(arenas[0].peer_base(2), arenas[2].base());
  EXPECT_EQ(arenas[0].peer_base(2)[99], std::byte{7});
  EXPECT_EQ(arenas[1].base()[0], std::byte{0});
  EXPECT_EQ(arenas[1].offset_of(arenas[1].base() + 5), Bytes(5));
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(arenas[1].base()) % 4096, 0U);
}

TEST(Arena, HighWaterIsTheHighestExtent) {
  auto arenas = make_in_process_arenas(1, Bytes(1000));
  Arena& a = arenas[0];
  EXPECT_EQ(a.high_water(), Bytes(0));
  a.touch(Bytes(100), Bytes(200));
  a.touch(Bytes(0), Bytes(50));
  EXPECT_EQ(a.high_water(), Bytes(300));
  EXPECT_THROW(a.touch(Bytes(900), Bytes(101)), Error);
  EXPECT_EQ(a.high_water(), Bytes(300));
}

TEST(Arena, PrefaultKeepsTheBytes) {
  auto arenas = make_in_process_arenas(1, Bytes(10000));
  std::memset(arenas[0].base(), 9, 10000);
  prefault(arenas[0].base() + 17, Bytes(9000));
  for (const std::byte b : arenas[0].view(Bytes(0), Bytes(10000))) ASSERT_EQ(b, std::byte{9});
}

// Untouched memory with pages of the usual size.
std::shared_ptr<std::byte> untouched(std::size_t bytes) {
  void* map = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  HR_CHECK(map != MAP_FAILED);
  madvise(map, bytes, MADV_NOHUGEPAGE);
  return {static_cast<std::byte*>(map), [bytes](std::byte* p) { munmap(p, bytes); }};
}

// Threads share the range at huge-page boundaries. The range begins and ends within pages.
TEST(Arena, PrefaultGivesEveryPageMemoryAndNoOther) {
  const std::size_t page = page_bytes(), pages = (std::size_t{9} << 20) / page;
  for (const int threads : {1, 2, 3, 8}) {
    const auto memory = untouched((pages + 8) * page);
    std::byte* begin = memory.get() + 4 * page;
    EXPECT_THAT(resident_pages(memory.get(), (pages + 8) * page), Each(false));
    prefault(begin + 17, Bytes(static_cast<std::int64_t>(pages * page - 17 - 100)), threads);
    EXPECT_THAT(resident_pages(begin, pages * page), Each(true)) << threads << " threads";
    EXPECT_THAT(resident_pages(memory.get(), 4 * page), Each(false));
    EXPECT_THAT(resident_pages(begin + pages * page, 4 * page), Each(false));
  }
}

TEST(Arena, InProcessSlabsArePrefaulted) {
  for (const Arena& a : make_in_process_arenas(2, kMiB * 3))
    EXPECT_THAT(resident_pages(a.base(), std::size_t{3} << 20), Each(true));
  for (const Arena& a : make_in_process_arenas(2, kMiB * 16, kMiB * 3)) {
    EXPECT_THAT(resident_pages(a.base(), std::size_t{3} << 20), Each(true));
    // Compares from a huge-page boundary on, in case the system uses huge pages.
    EXPECT_THAT(resident_pages(a.base() + (4 << 20), std::size_t{12} << 20), Each(false));
  }
}

TEST(Topology, PeersAreTheRanksOfTheHost) {
  const Topology t = Topology::uniform(2, 3);
  EXPECT_EQ(t.size(), 6);
  EXPECT_EQ(t.hosts(), 2);
  EXPECT_EQ(t.peers(4), (std::vector<int>{3, 4, 5}));
  EXPECT_EQ(Topology::one_host(2).hosts(), 1);
}

// Open MPI needs room beside the segments of a window: a twentieth of its file when it is made, and later
// room for the messages of each rank.
TEST(SharedNeed, HasRoomForMpi) {
  for (const Bytes each : {Bytes(1), kMiB * 11, kGiB * 3})
    for (const int ranks : {2, 4, 16}) {
      const SharedNeed need = arenas_need(each, ranks);
      EXPECT_GE(need.segments, each * ranks);
      EXPECT_GE(need.total().value * 100, need.segments.value * 105);
      EXPECT_GE(need.total(), need.segments + kMiB * 4 * ranks);
      EXPECT_LE(need.total(), need.segments + std::max(need.segments / 20, kMiB * 4 * ranks) + kMiB * ranks);
    }
  EXPECT_EQ(window_need(kMiB * 5, 1).total(), kMiB * 5) << "one rank alone sends nobody anything";
}

TEST(SharedNeed, OfTheLargestArenaFitsExactly) {
  for (const Bytes available : {kMiB * 32, kMiB * 640, kGiB * 100})
    for (const int ranks : {1, 2, 4}) {
      const Bytes each = largest_arena(available, ranks);
      EXPECT_GT(each, Bytes(0));
      EXPECT_LE(arenas_need(each, ranks).total(), available);
      EXPECT_GT(arenas_need(each + Bytes(64), ranks).total(), available) << to_string(available);
    }
  EXPECT_EQ(largest_arena(kMiB, 4), Bytes(0));
}

TEST(SharedNeed, IsRefusedWithTheFreeRoom) {
  const SharedNeed need = arenas_need(kMiB * 64, 4);
  EXPECT_NO_THROW(require_shared_memory(need, need.total(), kGiB));
  try {
    require_shared_memory(need, need.total() - Bytes(1), kGiB);
    ADD_FAILURE() << "it fits";
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), Code::kDoesNotFit);
    EXPECT_EQ(e.place(), "/dev/shm");
    EXPECT_EQ(e.legal(), std::to_string(need.total().value) + " bytes free, or more");
    EXPECT_FALSE(e.remedy().empty());
  }
}

}  // namespace
}  // namespace hyperrun

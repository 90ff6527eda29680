#include "memory/arena.h"

#include <gtest/gtest.h>

#include <cstring>

#include "memory/host.h"
#include "runtime/base/error.h"

namespace hyperrun {
namespace {

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

TEST(Topology, PeersAreTheRanksOfTheHost) {
  const Topology t = Topology::uniform(2, 3);
  EXPECT_EQ(t.size(), 6);
  EXPECT_EQ(t.hosts(), 2);
  EXPECT_EQ(t.peers(4), (std::vector<int>{3, 4, 5}));
  EXPECT_EQ(Topology::one_host(2).hosts(), 1);
}

}  // namespace
}  // namespace hyperrun

#include "runtime/ir/zigzag.h"

#include <gtest/gtest.h>

#include <vector>

namespace hyperrun {
namespace {

std::vector<std::int64_t> positions(std::int64_t length, std::int64_t ring) {
  std::vector<std::int64_t> list;
  for (std::int64_t p = 0; p < length; ++p) list.push_back(Zigzag::of(length, ring).position(p));
  return list;
}

TEST(Zigzag, PartsAreAChunkAndItsCounterpart) {
  EXPECT_EQ(positions(5, 1), (std::vector<std::int64_t>{0, 1, 2, 3, 4}));
  EXPECT_EQ(positions(4, 2), (std::vector<std::int64_t>{0, 3, 1, 2}));
  EXPECT_EQ(positions(12, 3), (std::vector<std::int64_t>{0, 1, 10, 11, 2, 3, 8, 9, 4, 5, 6, 7}));
}

TEST(Zigzag, PlacesAndPositionsAreInverse) {
  for (const std::int64_t ring : {1, 2, 3, 8}) {
    const Zigzag order = Zigzag::of(48, ring);
    for (std::int64_t p = 0; p < 48; ++p) {
      EXPECT_EQ(order.place(order.position(p)), p);
      EXPECT_EQ(order.position(order.place(p)), p);
    }
    EXPECT_GE(order.place(48), 48) << "behind the end is no place";
  }
}

TEST(Zigzag, RunsHoldPositionsThatFollowEachOther) {
  for (const std::int64_t ring : {1, 2, 3, 8}) {
    const Zigzag order = Zigzag::of(48, ring);
    for (std::int64_t p = 0; p < 48; ++p) {
      const std::int64_t n = order.run(p, 48 - p);
      ASSERT_GT(n, 0);
      ASSERT_LE(n, 48 - p);
      for (std::int64_t i = 0; i < n; ++i) EXPECT_EQ(order.position(p + i), order.position(p) + i);
      EXPECT_EQ(order.run(p, 1), 1);
    }
  }
}

}  // namespace
}  // namespace hyperrun

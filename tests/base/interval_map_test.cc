#include "runtime/base/interval_map.h"

#include <gtest/gtest.h>

#include <array>
#include <random>

namespace hyperrun {
namespace {

// Compares the map with an array that has a value for each point.
TEST(IntervalMap, IsAFunctionOfEachPoint) {
  constexpr int kPoints = 60;
  std::mt19937 rng(5);
  for (int round = 0; round < 50; ++round) {
    IntervalMap<int> map;
    std::array<int, kPoints> points{};
    for (int value = 1; value <= 40; ++value) {
      const int begin = static_cast<int>(rng() % kPoints);
      const int end = begin + 1 + static_cast<int>(rng() % (kPoints - begin));
      const auto range = map.pieces(begin, end);
      ASSERT_EQ(range.first->first, begin);
      for (auto piece = range.first; piece != range.second; ++piece) {
        const auto next = std::next(piece);
        const std::int64_t until = next == range.second ? end : next->first;
        for (std::int64_t at = piece->first; at < until; ++at)
          ASSERT_EQ(points[static_cast<std::size_t>(at)], piece->second);
        if (value % 2 == 0) piece->second += value;
      }
      for (int at = begin; at < end; ++at) {
        int& point = points[static_cast<std::size_t>(at)];
        point = value % 2 == 0 ? point + value : value;
      }
      if (value % 2 != 0) map.unite(range, value);
    }
  }
}

TEST(IntervalMap, UnitedPiecesAreOne) {
  IntervalMap<int> map;
  map.pieces(2, 4);
  map.pieces(4, 8);
  map.unite(map.pieces(0, 10), 7);
  const auto [first, last] = map.pieces(0, 10);
  EXPECT_EQ(std::next(first), last);
  EXPECT_EQ(first->second, 7);
}

}  // namespace
}  // namespace hyperrun

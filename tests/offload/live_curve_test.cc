#include "runtime/offload/live_curve.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "runtime/offload/interval_index.h"

namespace hyperrun {
namespace {

TEST(LiveCurve, EqualsAPlainArray) {
  std::mt19937 random(3);
  for (const std::int32_t n : {1, 2, 7, 64, 100}) {
    LiveCurve curve(n);
    std::vector<std::int64_t> plain(static_cast<std::size_t>(n), 0);
    const auto any = [&](std::int32_t to) {
      return static_cast<std::int32_t>(random() % static_cast<unsigned>(to));
    };
    for (int i = 0; i < 200; ++i) {
      std::int32_t first = any(n), last = any(n);
      if (i % 10 != 0 && first > last) std::swap(first, last);  // now and then nothing at all
      const std::int64_t bytes = any(1000) - 300;
      curve.add(first, last, bytes);
      for (std::int32_t k = first; k <= last; ++k) plain[static_cast<std::size_t>(k)] += bytes;
      const auto top = std::ranges::max_element(plain);
      if (*top >= 0) {
        EXPECT_EQ(curve.highest(), *top);
        if (*top > 0) {
          EXPECT_EQ(curve.where(), top - plain.begin());
        }
      }
      const std::int32_t from = any(n), to = from + any(n - from);
      EXPECT_EQ(curve.highest(from, to), *std::max_element(plain.begin() + from, plain.begin() + to + 1));
      EXPECT_EQ(curve.at(from), plain[static_cast<std::size_t>(from)]);
      const std::int64_t limit = plain[static_cast<std::size_t>(any(n))];
      std::int32_t above = to;
      while (above >= from && plain[static_cast<std::size_t>(above)] <= limit) --above;
      EXPECT_EQ(curve.last_above(from, to, limit), above);
      above = from;
      while (above <= to && plain[static_cast<std::size_t>(above)] <= limit) ++above;
      EXPECT_EQ(curve.first_above(from, to, limit), above);
    }
  }
}

TEST(LiveCurve, SumsItsChanges) {
  const LiveCurve curve(std::vector<std::int64_t>{5, 0, -7, 4, 1});
  const std::vector<std::int64_t> expected{5, 5, -2, 2, 3};
  for (std::int32_t i = 0; i < 5; ++i) EXPECT_EQ(curve.at(i), expected[static_cast<std::size_t>(i)]);
  EXPECT_EQ(curve.where(), 0);
  EXPECT_EQ(curve.last_above(0, 4, 3), 1);
  EXPECT_EQ(curve.last_above(2, 4, 3), 1);
}

TEST(IntervalIndex, FindsTheLowestThatIsFree) {
  std::mt19937 random(4);
  const auto any = [&](std::int32_t to) {
    return static_cast<std::int32_t>(random() % static_cast<unsigned>(to));
  };
  for (const std::int32_t n : {1, 3, 50}) {
    IntervalIndex index(n);
    std::vector<std::pair<std::int32_t, std::int32_t>> plain(40);
    std::vector<bool> free(plain.size(), true);
    for (std::size_t id = plain.size(); id-- > 0;) {
      plain[id] = {any(n), any(n)};
      index.add(plain[id].first, plain[id].second, static_cast<std::int32_t>(id));
    }
    for (int i = 0; i < 100; ++i) {
      free[random() % free.size()] = false;
      const std::int32_t at = any(n);
      std::int32_t expected = IntervalIndex::kNone;
      std::size_t covering = 0;
      for (std::size_t id = plain.size(); id-- > 0;) {
        if (plain[id].first > at || at > plain[id].second) continue;
        ++covering;
        if (free[id]) expected = static_cast<std::int32_t>(id);
      }
      const auto is_free = [&](std::int32_t id) {
        return static_cast<bool>(free[static_cast<std::size_t>(id)]);
      };
      std::size_t visited = 0;
      index.each_at(at, [&](std::int32_t) { ++visited; });
      EXPECT_LE(visited, covering);  // ids that are not free may have been removed
      EXPECT_EQ(index.first_at(at, is_free), expected);
    }
  }
}

}  // namespace
}  // namespace hyperrun

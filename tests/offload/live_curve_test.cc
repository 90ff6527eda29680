#include "runtime/offload/live_curve.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace hyperrun {
namespace {

TEST(LiveCurve, IsAnArrayThatIsFast) {
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
    }
  }
}

}  // namespace
}  // namespace hyperrun

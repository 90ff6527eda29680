#include "runtime/ir/rope.h"

#include <gtest/gtest.h>

#include <cmath>

namespace hyperrun {
namespace {

// The rule of Llama 3.1's authors, by wavelength in positions: waves longer than `slow` are slowed down,
// waves shorter than `fast` stay unchanged.
TEST(RopeFrequencies, OfLlama31ByWavelengths) {
  const RopeScaling scaling{
      .factor = 8, .low_freq_factor = 1, .high_freq_factor = 4, .original_sequence = 8192};
  const double slow = 8192 / 1.0, fast = 8192 / 4.0;
  const std::vector<double> list = rope_frequencies(128, 500000, scaling);
  ASSERT_EQ(list.size(), 64U);
  int kept = 0, slowed = 0;
  for (int i = 0; i < 64; ++i) {
    const double before = 1 / std::pow(500000, 2 * i / 128.0), wavelength = 2 * std::acos(-1.0) / before;
    const double smooth = (8192 / wavelength - 1) / (4 - 1);
    const double expected = wavelength > slow   ? before / 8
                            : wavelength < fast ? before
                                                : (1 - smooth) * before / 8 + smooth * before;
    EXPECT_NEAR(list[static_cast<std::size_t>(i)] / expected, 1, 1e-12) << i;
    kept += wavelength < fast;
    slowed += wavelength > slow;
  }
  EXPECT_EQ(kept, 29);
  EXPECT_EQ(slowed, 29);
}

TEST(RopeFrequencies, AllTheSameOfLinearScaling) {
  const std::vector<double> scaled = rope_frequencies(32, 10000, {.factor = 4}),
                            plain = rope_frequencies(32, 10000, {});
  for (std::size_t i = 0; i < plain.size(); ++i) {
    EXPECT_EQ(plain[i], std::pow(10000.0, -2.0 * static_cast<double>(i) / 32));
    EXPECT_EQ(scaled[i], plain[i] / 4);
  }
}

}  // namespace
}  // namespace hyperrun

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

// The other types are beside NumPy in tests/model/reference; here are their edges.
TEST(RopeFrequencies, OfDynamicScalingFollowTheLongestText) {
  const RopeScaling scaling{.type = "dynamic", .factor = 2, .original_sequence = 64};
  const std::vector<double> plain = rope_frequencies(8, 10000, {});
  EXPECT_EQ(rope_frequencies(8, 10000, scaling, 64), plain);
  EXPECT_EQ(rope_frequencies(8, 10000, scaling, 1), plain);
  const std::vector<double> longer = rope_frequencies(8, 10000, scaling, 128);
  EXPECT_EQ(longer[0], 1) << "the first pair turns as ever";
  for (std::size_t i = 1; i < 4; ++i)
    EXPECT_NEAR(longer[i], std::pow(10000 * std::pow(3, 8 / 6.0), -2.0 * static_cast<double>(i) / 8), 1e-15);
}

TEST(RopeFrequencies, OfLongRopeChooseTheirFactors) {
  const RopeScaling scaling{.type = "longrope",
                            .factor = 4,
                            .original_sequence = 16,
                            .short_factor = {1, 2},
                            .long_factor = {3, 5}};
  EXPECT_DOUBLE_EQ(rope_frequencies(4, 100, scaling, 16)[1], 0.1 / 2);
  EXPECT_DOUBLE_EQ(rope_frequencies(4, 100, scaling, 17)[0], 1.0 / 3);
  EXPECT_DOUBLE_EQ(rope_frequencies(4, 100, scaling, 17)[1], 0.1 / 5);
  EXPECT_NEAR(rope_magnitude(scaling), std::sqrt(1.5), 1e-15) << "ln 4 is half of ln 16";
}

TEST(RopeMagnitude, OfYarn) {
  RopeScaling scaling{.type = "yarn", .factor = std::exp(2), .original_sequence = 16};
  EXPECT_NEAR(rope_magnitude(scaling), 1.2, 1e-15);
  EXPECT_EQ(rope_score_factor(scaling), 1);
  scaling.mscale = 2, scaling.mscale_all_dim = 3;
  EXPECT_NEAR(rope_magnitude(scaling), 1.4 / 1.6, 1e-15);
  EXPECT_NEAR(rope_score_factor(scaling), 1.6 * 1.6, 1e-14);
  scaling.attention_factor = 0.5;
  EXPECT_EQ(rope_magnitude(scaling), 0.5);
  scaling.factor = 1, scaling.attention_factor = 0;
  EXPECT_EQ(rope_magnitude(scaling), 1);
}

}  // namespace
}  // namespace hyperrun

#include "runtime/media/resample.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "tests/media/signals.h"

namespace hyperrun {
namespace {

// The largest difference in the middle, where the silence round the sound is out of the filter's reach.
double worst_in_middle(const std::vector<float>& a, const std::vector<float>& b) {
  double worst = 0;
  for (std::size_t i = a.size() / 4; i < a.size() * 3 / 4; ++i)
    worst = std::max(worst, std::abs(double{a[i]} - double{b[i]}));
  return worst;
}

struct Rates {
  std::int32_t from, to;
};

class Resample : public ::testing::TestWithParam<Rates> {};

// A sine below the band limit becomes the same sine, sampled at the other rate: in place and amplitude.
TEST_P(Resample, KeepsASineWhereItIs) {
  const auto [from, to] = GetParam();
  for (const double part : {0.01, 0.3, 0.6, 0.88}) {
    const double hertz = part * std::min(from, to) / 2;
    const Sound sound{from, sine(hertz, from, static_cast<std::size_t>(from), 0.5)};
    const Sound other = resample(sound, to);
    EXPECT_EQ(other.rate, to);
    ASSERT_EQ(std::ssize(other.samples), to);  // a second
    EXPECT_LT(worst_in_middle(other.samples, sine(hertz, to, other.samples.size(), 0.5)), 0.5e-4)
        << hertz << " Hz";
  }
}

// What the lower rate cannot hold is gone, not folded back: 85 dB below 0.5 are 2.8e-5.
TEST_P(Resample, TakesAwayWhatTheLowerRateCannotHold) {
  const auto [from, to] = GetParam();
  if (to >= from) return;
  for (const double part : {1.003, 1.02, 1.1, 1.3}) {
    const double hertz = part * to / 2;
    if (hertz >= from / 2.0) continue;
    const Sound sound{from, sine(hertz, from, static_cast<std::size_t>(from), 0.5)};
    const std::vector<float> silence(static_cast<std::size_t>(to));
    EXPECT_LT(worst_in_middle(resample(sound, to).samples, silence), 2.8e-5) << hertz << " Hz";
  }
}

INSTANTIATE_TEST_SUITE_P(Rates, Resample,
                         ::testing::Values(Rates{8000, 16000}, Rates{22050, 16000}, Rates{44100, 16000},
                                           Rates{48000, 16000}, Rates{16000, 22050}, Rates{16000, 11025},
                                           Rates{16000, 16001}),
                         [](const auto& info) {
                           return std::to_string(info.param.from) + "To" + std::to_string(info.param.to);
                         });

TEST(ResampleEdges, AConstantStays) {
  const Sound other = resample({22050, std::vector<float>(4000, 0.25F)}, 16000);
  for (std::size_t i = 1000; i < 1900; ++i) ASSERT_NEAR(other.samples[i], 0.25, 1e-6);
}

TEST(ResampleEdges, TheSameRateIsTheSameSound) {
  const Sound sound{16000, sine(7900, 16000, 100, 1)};
  EXPECT_EQ(resample(sound, 16000).samples, sound.samples);
}

TEST(ResampleEdges, ShortSoundsAndTheirLengths) {
  EXPECT_EQ(resample({8000, {}}, 16000).samples.size(), 0u);
  EXPECT_EQ(resample({8000, {1}}, 16000).samples.size(), 2u);
  EXPECT_EQ(resample({44100, {1, 1, 1}}, 16000).samples.size(), 2u);  // 3 * 16000 / 44100 = 1.09, rounded up
  EXPECT_EQ(resampled({3, 44100}, 16000), 2);
}

}  // namespace
}  // namespace hyperrun

#include "runtime/media/log_mel.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <complex>
#include <numbers>
#include <random>

#include "tests/media/signals.h"

namespace hyperrun {
namespace {

constexpr double kPi = std::numbers::pi;

// Log-mel frames from the definition, in double and without an FFT. Windows are cut out of the mirrored
// sound, and each frequency is a sum. Triangles are evaluated at each frequency.
class Direct {
 public:
  Direct(const std::vector<float>& samples, int bins) : bins_(bins) {
    const std::size_t frames = samples.size() / 160;
    std::vector<double> padded(samples.begin(), samples.end());
    for (int i = 1; i <= 200; ++i) {
      padded.insert(padded.begin(), samples[static_cast<std::size_t>(i)]);
      padded.push_back(samples[samples.size() - 1 - static_cast<std::size_t>(i)]);
    }
    for (std::size_t t = 0; t < frames; ++t) add_frame(&padded[t * 160]);
    const double largest = *std::ranges::max_element(values);
    for (double& v : values) v = (std::max(v, largest - 8) + 4) / 4;
  }

  std::vector<double> values;

 private:
  void add_frame(const double* samples) {
    std::vector<double> power;
    for (int f = 0; f <= 200; ++f) {
      std::complex<double> sum = 0;
      for (int n = 0; n < 400; ++n)
        sum += samples[n] * std::pow(std::sin(kPi * n / 400), 2) * std::polar(1.0, -2 * kPi * f * n / 400);
      power.push_back(std::norm(sum));
    }
    for (int b = 0; b < bins_; ++b) {
      double sum = 0;
      for (int f = 0; f <= 200; ++f) sum += triangle(b, 40.0 * f) * power[static_cast<std::size_t>(f)];
      values.push_back(std::log10(std::max(sum, 1e-10)));
    }
  }

  // Slaney: 15 mel below 1 kHz in equal steps, then 27 for each factor of 6.4. 8 kHz are 45.2 mel.
  double corner(int i) const {
    const double mel = (15 + 27 * std::log(8.0) / std::log(6.4)) * i / (bins_ + 1);
    return mel < 15 ? mel * 1000 / 15 : 1000 * std::pow(6.4, (mel - 15) / 27);
  }

  double triangle(int bin, double hertz) const {
    const double low = corner(bin), peak = corner(bin + 1), high = corner(bin + 2);
    if (hertz <= low || hertz >= high) return 0;
    const double height = hertz < peak ? (hertz - low) / (peak - low) : (high - hertz) / (high - peak);
    return height * 2 / (high - low);  // of area 1 in Hz
  }

  int bins_;
};

void expect_near(const std::vector<float>& mel, const std::vector<double>& direct, double most) {
  ASSERT_EQ(mel.size(), direct.size());
  double worst = 0;
  for (std::size_t i = 0; i < mel.size(); ++i) worst = std::max(worst, std::abs(double{mel[i]} - direct[i]));
  EXPECT_LT(worst, most);
}

// The allowed round-off. The clamp is at 1e-4 of the largest amplitude. The round-off of a float FFT is 2^-24
// of the largest amplitude in each of some eight passes (random: three times one). At the clamp that is at
// most 1.8e-3 of an amplitude, and usually a tenth of it, because few frequencies have the largest. This
// makes 1.6e-4 of log10 of the power, and a quarter of that in the result.
constexpr double kRoundOff = 1e-4;

class LogMel : public ::testing::TestWithParam<int> {};

TEST_P(LogMel, OfARisingToneIsThatOfTheDefinition) {
  const std::vector<float> samples = rising_tone(4000);
  expect_near(log_mel(samples, GetParam()), Direct(samples, GetParam()).values, kRoundOff);
}

// Noise has no quiet bins, so the only round-off is that of the values: 2e-6 is 16 steps of a float near 1.
TEST_P(LogMel, OfNoiseIsThatOfTheDefinition) {
  std::mt19937 random(5);
  std::vector<float> samples(3333);
  for (float& v : samples) v = static_cast<float>(random()) / 4294967296.0F - 0.5F;
  expect_near(log_mel(samples, GetParam()), Direct(samples, GetParam()).values, 2e-6);
}

INSTANTIATE_TEST_SUITE_P(Bins, LogMel, ::testing::Values(1, 40, 80, 128));

// The expected values are those of torch.stft and torchaudio's melscale_fbanks (norm and mel_scale "slaney");
// log_mel_reference.py prints them.
TEST(LogMelReference, IsThatOfTorch) {
  const std::vector<float> mel = log_mel(rising_tone(16000), 80);
  ASSERT_EQ(mel.size(), 100u * 80);
  struct Value {
    std::size_t frame, bin;
    double value;
  };
  for (const Value& v :
       std::vector<Value>{{0, 3, 1.268245},   {0, 4, 1.330875},    {0, 7, 0.828924},    {1, 4, 1.344924},
                          {1, 5, 1.366203},   {1, 8, 1.090169},    {10, 32, 1.337487},  {10, 33, 1.366221},
                          {10, 36, 0.823778}, {25, 54, 1.064365},  {25, 55, 1.318756},  {25, 58, 0.229165},
                          {50, 72, 1.071047}, {50, 73, 1.280800},  {50, 76, -0.605871}, {75, 75, 0.883816},
                          {75, 76, 1.265225}, {75, 79, -0.630137}, {90, 67, 0.882294},  {90, 68, 1.281964},
                          {90, 71, -0.324103}})
    EXPECT_NEAR(mel[v.frame * 80 + v.bin], v.value, kRoundOff) << v.frame << " " << v.bin;
}

// The expected values are from the documentation of librosa's hz_to_mel and mel_to_hz.
TEST(MelScale, IsSlaneys) {
  EXPECT_NEAR(mel_of_hertz(60), 0.9, 1e-12);
  EXPECT_NEAR(mel_of_hertz(110), 1.65, 1e-12);
  EXPECT_NEAR(mel_of_hertz(440), 6.6, 1e-12);
  EXPECT_NEAR(hertz_of_mel(3), 200, 1e-12);
  EXPECT_NEAR(mel_of_hertz(6400), 42, 1e-12);
  for (const double hertz : {0.0, 999.0, 1000.0, 1001.0, 8000.0})
    EXPECT_NEAR(hertz_of_mel(mel_of_hertz(hertz)), hertz, 1e-9);
}

TEST(MelFilters, AreTrianglesOfAreaOne) {
  const std::vector<float> filters = mel_filters(40);
  ASSERT_EQ(filters.size(), 40u * kMelFrequencies);
  // The area is summed at steps of 40 Hz, good to some per cent for triangles of several steps.
  for (std::size_t b = 20; b < 40; ++b) {
    double area = 0;
    for (std::size_t f = 0; f < kMelFrequencies; ++f) area += 40.0 * filters[b * kMelFrequencies + f];
    EXPECT_NEAR(area, 1, 0.05) << b;
  }
}

TEST(LogMelEdges, FramesOfShortSounds) {
  EXPECT_TRUE(log_mel({}, 80).empty());
  EXPECT_TRUE(log_mel(rising_tone(159), 80).empty());
  EXPECT_EQ(log_mel(rising_tone(160), 80).size(), 80u);  // shorter than its window: mirrored over and over
  EXPECT_EQ(mel_frames(16000), 100);
}

TEST(LogMelEdges, SilenceIsAllTheSame) {
  for (const float v : log_mel(std::vector<float>(1600), 80)) EXPECT_EQ(v, -1.5F);  // (log10(1e-10) + 4) / 4
}

TEST(LogMelEdges, NothingIsLowerThanEightBelowTheLargest) {
  const std::vector<float> mel = log_mel(rising_tone(16000), 80);
  const auto [low, high] = std::ranges::minmax_element(mel);
  EXPECT_NEAR(*high - *low, 2, 1e-6);
}

}  // namespace
}  // namespace hyperrun

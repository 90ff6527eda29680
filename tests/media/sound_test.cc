#include "runtime/media/sound.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

#include "tests/media/signals.h"
#include "tests/support/errors.h"

namespace hyperrun {
namespace {

// A WAV, byte by byte in RIFF's form: format 1 is PCM, 3 is float. Each number of `samples` belongs to one
// channel.
std::string wav_of(int format, int bits, int channels, std::int32_t rate, const std::string& samples) {
  const auto put = [](std::int64_t value, int bytes) {
    std::string text;
    for (int i = 0; i < bytes; ++i) text += static_cast<char>(value >> (8 * i) & 0xff);
    return text;
  };
  const int frame = channels * bits / 8;
  const std::string head = put(format, 2) + put(channels, 2) + put(rate, 4) +
                           put(std::int64_t{rate} * frame, 4) + put(frame, 2) + put(bits, 2);
  const std::string chunks = "fmt " + put(16, 4) + head + "data" + put(std::ssize(samples), 4) + samples;
  return "RIFF" + put(4 + std::ssize(chunks), 4) + "WAVE" + chunks;
}

// The bytes of a PCM sample for a value in [-1, 1): unsigned with 8 bits, else signed and little-endian.
std::string pcm(double value, int bits) {
  auto level = static_cast<std::int64_t>(std::lround(value * std::ldexp(1.0, bits - 1)));
  if (bits == 8) level += 128;
  std::string text;
  for (int i = 0; i < bits / 8; ++i) text += static_cast<char>(level >> (8 * i) & 0xff);
  return text;
}

std::string sine_wav(int bits, int channels, std::int32_t rate, std::size_t count) {
  std::string samples;
  for (const float v : sine(440, rate, count, 0.5))
    for (int c = 0; c < channels; ++c) samples += pcm(v, bits);
  return wav_of(1, bits, channels, rate, samples);
}

class Wav : public ::testing::TestWithParam<int> {};

// The decoded sine is within half a step of the levels.
TEST_P(Wav, SineOfSoManyBits) {
  constexpr std::int32_t kRate = 16000;
  const Sound sound = decode_wav(sine_wav(GetParam(), 1, kRate, 1000), "s.wav");
  const std::vector<float> expected = sine(440, kRate, 1000, 0.5);
  EXPECT_EQ(sound.rate, kRate);
  ASSERT_EQ(sound.samples.size(), expected.size());
  const double half_step = std::ldexp(1.0, -GetParam()) + 1e-7;  // and the rounding of a float
  for (std::size_t i = 0; i < expected.size(); ++i)
    ASSERT_NEAR(sound.samples[i], expected[i], half_step) << i;
}

INSTANTIATE_TEST_SUITE_P(Bits, Wav, ::testing::Values(8, 16, 24, 32));

TEST(Sound, ChannelsAreAveraged) {
  const std::string samples = pcm(0.5, 16) + pcm(-0.25, 16) + pcm(0.125, 16) + pcm(0.125, 16);
  const Sound sound = decode_wav(wav_of(1, 16, 2, 8000, samples), "s.wav");
  EXPECT_THAT(sound.samples, ::testing::ElementsAre(0.125F, 0.125F));  // exact in 16 bits
}

TEST(Sound, StereoOfTheSameIsMono) {
  EXPECT_EQ(decode_wav(sine_wav(16, 2, 22050, 777), "s.wav").samples,
            decode_wav(sine_wav(16, 1, 22050, 777), "s.wav").samples);
}

TEST(Sound, SizeIsThatOfWhatIsDecoded) {
  const SoundSize size = wav_size(sine_wav(24, 2, 44100, 321), "s.wav");
  EXPECT_EQ(size.samples, 321);
  EXPECT_EQ(size.rate, 44100);
}

TEST(Sound, WrittenAndReadIsTheSameWithinSixteenBits) {
  const Sound sound{22050, sine(1000, 22050, 500, 0.9)};
  const Sound read = decode_wav(encode_wav(sound), "s.wav");
  EXPECT_EQ(read.rate, 22050);
  ASSERT_EQ(read.samples.size(), sound.samples.size());
  for (std::size_t i = 0; i < sound.samples.size(); ++i)
    EXPECT_NEAR(read.samples[i], sound.samples[i], 1.0 / 32768);
}

TEST(Sound, BeyondFullScaleIsClippedWhereItIsWritten) {
  const Sound read = decode_wav(encode_wav({8000, {2.0F, -2.0F}}), "s.wav");
  EXPECT_THAT(read.samples, ::testing::ElementsAre(32767 / 32768.0F, -1.0F));
}

TEST(Sound, NotFiniteIsRefused) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const std::string samples(reinterpret_cast<const char*>(&nan), 4);
  EXPECT_ERROR(decode_wav(wav_of(3, 32, 1, 8000, samples), "s.wav"), Code::kBadCorpus, "s.wav", "finite");
}

TEST(Sound, WhatIsNoWavOrOfNoUseIsRefused) {
  const std::string one = pcm(0, 16);
  EXPECT_ERROR(decode_wav("", "s.wav"), Code::kBadCorpus, "s.wav", "no WAV");
  EXPECT_ERROR(decode_wav("OggS and more of it", "s.wav"), Code::kBadCorpus, "s.wav", "no WAV");
  EXPECT_ERROR(decode_wav(wav_of(1, 16, 1, 8000, ""), "s.wav"), Code::kBadCorpus, "s.wav", "no samples");
  EXPECT_ERROR(decode_wav(wav_of(1, 16, 1, 999, one), "s.wav"), Code::kBadCorpus, "s.wav",
               "999 samples a second");
  EXPECT_ERROR(decode_wav(wav_of(1, 16, 17, 8000, one), "s.wav"), Code::kBadCorpus, "s.wav", "");
}

TEST(Sound, EveryTruncationIsRefused) {
  const std::string bytes = sine_wav(16, 1, 8000, 60);
  for (std::size_t length = 0; length < bytes.size(); ++length)
    EXPECT_ERROR(decode_wav(std::string_view(bytes).substr(0, length), "cut.wav"), Code::kBadCorpus,
                 "cut.wav", length < 12 ? "no WAV" : "cut short");
}

TEST(Sound, DamageIsAnErrorNeverACrash) {
  const std::string bytes = sine_wav(16, 2, 8000, 60);
  std::mt19937 random(3);
  for (int i = 0; i < 5000; ++i) {
    std::string damaged = bytes;
    // Damage is mostly in the head, because the samples may be anything.
    for (int k = 0; k < 1 + i % 4; ++k) damaged[random() % 64] = static_cast<char>(random());
    try {
      const Sound sound = decode_wav(damaged, "s.wav");
      EXPECT_FALSE(sound.samples.empty());
      EXPECT_EQ(std::ssize(sound.samples), wav_size(damaged, "s.wav").samples);
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), Code::kBadCorpus) << e.what();
    }
  }
}

TEST(Sound, NoiseIsAnErrorNeverACrash) {
  std::mt19937 random(4);
  for (int i = 0; i < 1000; ++i) {
    std::string noise(random() % 200, '\0');
    for (char& c : noise) c = static_cast<char>(random());
    if (i % 2 == 0) noise.insert(0, "RIFF    WAVEfmt \x10" + std::string(3, '\0'));
    EXPECT_ERROR(decode_wav(noise, "noise.wav"), Code::kBadCorpus, "noise.wav", "");
  }
}

}  // namespace
}  // namespace hyperrun

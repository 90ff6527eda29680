// Reads and writes sounds: WAV to one channel of float, and back.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace hyperrun {

struct SoundSize {
  std::int64_t samples = 0;  // samples of each channel
  std::int32_t rate = 0;     // samples of each channel in a second
};

struct Sound {
  std::int32_t rate = 0;       // Hz
  std::vector<float> samples;  // mono, full scale is [-1, 1]
};

// The rates that are read, in Hz.
inline constexpr std::int32_t kLeastRate = 1000, kMostRate = 192000;

// Decodes a WAV: PCM of 8 to 32 bits, float, A-law or mu-law, with up to 16 channels, of which the mean is
// taken. The rate stays unchanged. kBadCorpus at `place`: no WAV, shorter than its head says, without a
// sample, with a number that is not finite, or of a rate outside of the range above.
Sound decode_wav(std::string_view bytes, const std::string& place);

// Reads the size from the head of the file alone. Throws the errors of decode_wav that the head shows.
SoundSize wav_size(std::string_view bytes, const std::string& place);

// The content of a WAV of 16 bits, mono. Samples beyond full scale are clipped.
std::string encode_wav(const Sound& sound);

}  // namespace hyperrun

// Sounds as an audio encoder takes them: WAV to one channel of float at the rate that is asked for.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace hyperrun {

struct SoundSize {
  std::int64_t samples = 0;  // of each channel
  std::int32_t rate = 0;     // of them a second
};

struct Sound {
  std::int32_t rate = 0;       // Hz
  std::vector<float> samples;  // mono, full scale is [-1, 1]
};

// The rates that are read, in Hz.
inline constexpr std::int32_t kLeastRate = 1000, kMostRate = 192000;

// A WAV as it is stored: PCM of 8 to 32 bits, float, A-law or mu-law, up to 16 channels, whose mean is taken.
// kBadCorpus at `place`: no WAV, cut short (the length that its head tells is not there), without a sample,
// with a number that is not finite, or of a rate beyond the above.
Sound decode_wav(std::string_view bytes, const std::string& place);

// From the head of the file alone. Errors as decode_wav, as far as the head shows them.
SoundSize wav_size(std::string_view bytes, const std::string& place);

// The content of a WAV of 16 bits, mono. Samples beyond full scale are clipped.
std::string encode_wav(const Sound& sound);

}  // namespace hyperrun

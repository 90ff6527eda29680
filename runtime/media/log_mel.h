// Log-mel frames of Whisper's encoder (A. Radford et al., "Robust Speech Recognition via Large-Scale Weak
// Supervision", 2022, 2.2): at 16 kHz a window of 25 ms (Hann, periodic) every 10 ms, the power of its
// spectrum, triangles on the mel scale, log10.
//
//   samples  |--400--|                 frame t is centred on sample 160 t; the sound is
//               |--400--|              mirrored before the first and after the last sample
//
// The mel scale and the triangles' heights are those of M. Slaney's Auditory Toolbox (1998): linear below
// 1 kHz, logarithmic above, each triangle of area 2 Hz.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace hyperrun {

inline constexpr std::int32_t kMelRate = 16000;                      // Hz
inline constexpr std::int32_t kMelWindow = 400, kMelHop = 160;       // samples
inline constexpr std::int32_t kMelFrequencies = kMelWindow / 2 + 1;  // 0, 40, ... 8000 Hz
inline constexpr std::int32_t kMostMelBins = 128;

// The number of frames, one for each whole hop.
constexpr std::int64_t mel_frames(std::int64_t samples) { return samples / kMelHop; }

// Slaney's mel scale: 15 at 1 kHz, 42 at 6.4 kHz.
double mel_of_hertz(double hertz);
double hertz_of_mel(double mel);

// The filters, [bins, kMelFrequencies]: the weight of each frequency's power in each bin. 1 <= bins <=
// kMostMelBins.
std::vector<float> mel_filters(std::int32_t bins);

// The frames [mel_frames, bins] of samples at kMelRate. With m = log10 of a bin's power (at least 1e-10), but
// no less than 8 below the sound's largest m, a value is (m + 4) / 4. Empty for fewer than kMelHop samples.
std::vector<float> log_mel(std::span<const float> samples, std::int32_t bins);

}  // namespace hyperrun

// Converts a sound to another rate.
#pragma once

#include <cstdint>

#include "runtime/media/sound.h"

namespace hyperrun {

// `sound` at `rate` Hz (kLeastRate to kMostRate). The result has ceil(samples * rate / sound.rate) samples;
// sample n is at the time n / rate. The band is limited by a windowed sinc (Kaiser, 48 zero crossings on each
// side). With h, half of the lower rate: frequencies below 0.88 h keep their amplitude within 1e-4, those
// above h are at least 85 dB lower. Silence surrounds the sound. With equal rates the sound is unchanged.
Sound resample(const Sound& sound, std::int32_t rate);

// The number of samples of the result, without the sound.
constexpr std::int64_t resampled(SoundSize size, std::int32_t rate) {
  return (size.samples * rate + size.rate - 1) / size.rate;
}

}  // namespace hyperrun

// Another rate for the same sound.
#pragma once

#include <cstdint>

#include "runtime/media/sound.h"

namespace hyperrun {

// `sound` at `rate` Hz (kLeastRate to kMostRate), ceil(samples * rate / sound.rate) samples; sample n of the
// result is at the time n / rate. A band limit by a windowed sinc (Kaiser, 48 zero crossings a side): what is
// below 0.88 of the lower of the two rates' halves passes within 1e-4 of its amplitude, what is above that
// half comes out 85 dB lower at least. Silence surrounds the sound. Equal rates: as it is.
Sound resample(const Sound& sound, std::int32_t rate);

// How many samples resample gives, without the sound.
constexpr std::int64_t resampled(SoundSize size, std::int32_t rate) {
  return (size.samples * rate + size.rate - 1) / size.rate;
}

}  // namespace hyperrun

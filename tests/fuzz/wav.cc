// A sound: its size, its samples, and log-mel frames of them.
#include <cmath>

#include "runtime/media/sound.h"
#include "tests/fuzz/fuzz.h"

using namespace hyperrun;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes = fuzz::text_of(data, size);
  fuzz::take_or_refuse_at([&] { wav_size(bytes, "/a.wav"); });
  fuzz::take_or_refuse_at([&] {
    const Sound sound = decode_wav(bytes, "/a.wav");
    const SoundSize head = wav_size(bytes, "/a.wav");
    fuzz::expect(sound.rate == head.rate, "two rates of a sound");
    fuzz::expect(std::ssize(sound.samples) == head.samples, "two lengths of a sound");
    for (const float sample : sound.samples)
      fuzz::expect(std::isfinite(sample), "a sample that is not finite");
    encode_wav(sound);
  });
  return 0;
}

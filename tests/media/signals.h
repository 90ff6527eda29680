// Sounds with known samples.
#pragma once

#include <cmath>
#include <cstdint>
#include <numbers>
#include <vector>

namespace hyperrun {

inline std::vector<float> sine(double hertz, std::int32_t rate, std::size_t count, double amplitude) {
  std::vector<float> samples;
  for (std::size_t n = 0; n < count; ++n)
    samples.push_back(static_cast<float>(
        amplitude * std::sin(2 * std::numbers::pi * hertz * static_cast<double>(n) / rate)));
  return samples;
}

// A tone at 16 kHz that rises from 100 Hz by 12000 Hz a second: log_mel_reference.py has the same.
inline std::vector<float> rising_tone(std::size_t count) {
  std::vector<float> samples;
  for (std::size_t n = 0; n < count; ++n) {
    const double t = static_cast<double>(n) / 16000;
    samples.push_back(static_cast<float>(0.5 * std::sin(2 * std::numbers::pi * (100 * t + 6000 * t * t))));
  }
  return samples;
}

}  // namespace hyperrun

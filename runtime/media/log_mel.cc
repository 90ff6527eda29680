#include "runtime/media/log_mel.h"

#include <kiss_fftr.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <numbers>

#include "runtime/base/error.h"

namespace hyperrun {
namespace {

// The mel scale: below 1 kHz a mel is 200 / 3 Hz; above, 27 mels are a factor of 6.4.
constexpr double kHertzOfMel = 200.0 / 3.0, kKneeHertz = 1000.0, kKneeMel = kKneeHertz / kHertzOfMel;
const double kLogStep = std::log(6.4) / 27.0;

using Frame = std::array<float, kMelWindow>;
using Power = std::array<float, kMelFrequencies>;

Frame hann_window() {
  Frame window;
  for (std::size_t i = 0; i < window.size(); ++i)
    window[i] =
        static_cast<float>(0.5 - 0.5 * std::cos(2 * std::numbers::pi * static_cast<double>(i) / kMelWindow));
  return window;
}

// The index of sample `at` (any integer) of the mirrored sound: 2 1 0 1 2 ... n-1 n-2 ..., repeated for short
// sounds.
std::size_t mirrored(std::int64_t at, std::int64_t samples) {
  if (samples == 1) return 0;
  const std::int64_t period = 2 * (samples - 1);
  const std::int64_t within = (at % period + period) % period;
  return static_cast<std::size_t>(std::min(within, period - within));
}

// The samples from `from` on.
Frame cut(std::span<const float> samples, std::int64_t from) {
  Frame frame;
  if (from >= 0 && from + kMelWindow <= std::ssize(samples)) {
    std::ranges::copy(samples.subspan(static_cast<std::size_t>(from), frame.size()), frame.begin());
    return frame;
  }
  for (std::size_t i = 0; i < frame.size(); ++i)
    frame[i] = samples[mirrored(from + static_cast<std::int64_t>(i), std::ssize(samples))];
  return frame;
}

// Computes the power spectra of frames, one after the other.
class Spectrum {
 public:
  Spectrum() : config_(kiss_fftr_alloc(kMelWindow, 0, nullptr, nullptr)), window_(hann_window()) {
    HR_CHECK(config_ != nullptr, "kissfft has no memory");
  }

  Power power(std::span<const float> samples, std::int64_t frame) const {
    Frame windowed = cut(samples, frame * kMelHop - kMelWindow / 2);
    for (std::size_t i = 0; i < windowed.size(); ++i) windowed[i] *= window_[i];
    std::array<kiss_fft_cpx, kMelFrequencies> transformed;
    kiss_fftr(config_.get(), windowed.data(), transformed.data());
    Power power;
    for (std::size_t f = 0; f < power.size(); ++f)
      power[f] = transformed[f].r * transformed[f].r + transformed[f].i * transformed[f].i;
    return power;
  }

 private:
  struct Free {
    void operator()(kiss_fftr_state* config) const { kiss_fftr_free(config); }
  };
  std::unique_ptr<kiss_fftr_state, Free> config_;
  Frame window_;
};

// A filter without the zeros around its triangle, which are most of it.
struct Triangle {
  std::size_t first = 0;  // first frequency
  std::vector<float> weights;

  float of(const Power& power) const {
    float sum = 0;
    for (std::size_t i = 0; i < weights.size(); ++i) sum += weights[i] * power[first + i];
    return sum;
  }
};

std::vector<Triangle> triangles(std::int32_t bins) {
  const std::vector<float> filters = mel_filters(bins);
  std::vector<Triangle> triangles(static_cast<std::size_t>(bins));
  for (std::size_t b = 0; b < triangles.size(); ++b) {
    const auto row = std::span(filters).subspan(b * kMelFrequencies, kMelFrequencies);
    const auto positive = [](float w) { return w > 0; };
    const auto first = std::ranges::find_if(row, positive);
    const auto last = std::ranges::find_if_not(first, row.end(), positive);
    triangles[b] = {static_cast<std::size_t>(first - row.begin()), {first, last}};
  }
  return triangles;
}

// Maps powers to Whisper's range, in place.
void compress(std::vector<float>& mel) {
  float largest = -10;  // log10(1e-10)
  for (float& m : mel) {
    m = std::log10(std::max(m, 1e-10F));
    largest = std::max(largest, m);
  }
  for (float& m : mel) m = (std::max(m, largest - 8.0F) + 4.0F) / 4.0F;
}

}  // namespace

double mel_of_hertz(double hertz) {
  return hertz < kKneeHertz ? hertz / kHertzOfMel : kKneeMel + std::log(hertz / kKneeHertz) / kLogStep;
}

double hertz_of_mel(double mel) {
  return mel < kKneeMel ? mel * kHertzOfMel : kKneeHertz * std::exp((mel - kKneeMel) * kLogStep);
}

std::vector<float> mel_filters(std::int32_t bins) {
  HR_CHECK(bins >= 1 && bins <= kMostMelBins);
  // The corners of the triangles: bin b rises from corner b to b + 1, and falls to b + 2.
  std::vector<double> corner;
  corner.reserve(static_cast<std::size_t>(bins) + 2);
  for (std::int32_t i = 0; i < bins + 2; ++i)
    corner.push_back(hertz_of_mel(mel_of_hertz(kMelRate / 2.0) * i / (bins + 1)));
  std::vector<float> filters;
  for (std::size_t b = 0; b + 2 < corner.size(); ++b) {
    const double low = corner[b], peak = corner[b + 1], high = corner[b + 2];
    for (std::int32_t f = 0; f < kMelFrequencies; ++f) {
      const double hertz = static_cast<double>(f) * kMelRate / kMelWindow;
      const double height = std::min((hertz - low) / (peak - low), (high - hertz) / (high - peak));
      filters.push_back(static_cast<float>(std::max(0.0, height) * 2 / (high - low)));
    }
  }
  return filters;
}

std::vector<float> log_mel(std::span<const float> samples, std::int32_t bins) {
  const std::vector<Triangle> filters = triangles(bins);
  const Spectrum spectrum;
  std::vector<float> mel;
  const std::int64_t frames = mel_frames(std::ssize(samples));
  mel.reserve(static_cast<std::size_t>(frames * bins));
  for (std::int64_t t = 0; t < frames; ++t) {
    const Power power = spectrum.power(samples, t);
    for (const Triangle& filter : filters) mel.push_back(filter.of(power));
  }
  compress(mel);
  return mel;
}

}  // namespace hyperrun

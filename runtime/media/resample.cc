#include "runtime/media/resample.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>

#include "runtime/base/error.h"

namespace hyperrun {
namespace {

// Kaiser's formulas (A. V. Oppenheim, R. W. Schafer: Discrete-Time Signal Processing, 7.6): beta = 9 is 90
// dB, and over 48 zero crossings a side the step is 12 % of the half rate wide. It ends at the half rate.
constexpr double kBeta = 9.0;
constexpr double kZeros = 48.0;
constexpr double kCutOff = 0.94;  // middle of the filter's step, as a share of the half rate

// The modified Bessel function of the first kind and order 0, by its power series.
double bessel_i0(double x) {
  double sum = 1, term = 1;
  for (int k = 1; term > sum * 1e-17; ++k) {
    const double factor = x / (2 * k);
    term *= factor * factor;
    sum += term;
  }
  return sum;
}

// The weights of the samples around a point that is `fraction` (0 to 1) of a sample behind one of them.
// weights[half + k] belongs to the k-th sample after that one, k from -half + 1 to half.
class Kernel {
 public:
  // `cut_off` as a part of the incoming rate's half, at most 1.
  explicit Kernel(double cut_off)
      : cut_off_(cut_off), width_(kZeros / cut_off), half_(static_cast<std::int64_t>(std::ceil(width_))) {}

  std::int64_t half() const { return half_; }

  std::vector<float> weights(double fraction) const {
    std::vector<double> exact;
    exact.reserve(static_cast<std::size_t>(2 * half_));
    for (std::int64_t k = -half_ + 1; k <= half_; ++k) exact.push_back(at(static_cast<double>(k) - fraction));
    const double sum = std::accumulate(exact.begin(), exact.end(), 0.0);
    std::vector<float> weights;  // they add up to one, so that a constant stays unchanged
    weights.reserve(exact.size());
    for (const double w : exact) weights.push_back(static_cast<float>(w / sum));
    return weights;
  }

 private:
  double at(double x) const {
    const double r = x / width_;
    if (r <= -1 || r >= 1) return 0;
    const double phase = std::numbers::pi * cut_off_ * x;
    const double sinc = phase == 0 ? 1 : std::sin(phase) / phase;
    return sinc * bessel_i0(kBeta * std::sqrt(1 - r * r));
  }

  double cut_off_, width_;
  std::int64_t half_;
};

float weighted(const std::vector<float>& samples, std::int64_t first, const std::vector<float>& weights) {
  const std::int64_t from = std::max<std::int64_t>(0, -first);
  const std::int64_t to = std::min(std::ssize(weights), std::ssize(samples) - first);
  float sum = 0;
  for (std::int64_t k = from; k < to; ++k)
    sum += samples[static_cast<std::size_t>(first + k)] * weights[static_cast<std::size_t>(k)];
  return sum;
}

}  // namespace

Sound resample(const Sound& sound, std::int32_t rate) {
  HR_CHECK(rate >= kLeastRate && rate <= kMostRate && sound.rate >= kLeastRate && sound.rate <= kMostRate);
  if (rate == sound.rate) return sound;
  const std::int64_t common = std::gcd(rate, sound.rate);
  const std::int64_t up = rate / common, down = sound.rate / common;
  const Kernel kernel(kCutOff * std::min(1.0, static_cast<double>(rate) / sound.rate));

  // Output n is n * down / up samples into the sound, so there are only `up` different fractions. The weights
  // of each are computed once.
  std::vector<std::vector<float>> weights(static_cast<std::size_t>(up));
  Sound out{rate, {}};
  const std::int64_t count = resampled({std::ssize(sound.samples), sound.rate}, rate);
  out.samples.reserve(static_cast<std::size_t>(count));
  for (std::int64_t n = 0; n < count; ++n) {
    const std::int64_t before = n * down / up, phase = n * down % up;
    std::vector<float>& w = weights[static_cast<std::size_t>(phase)];
    if (w.empty()) w = kernel.weights(static_cast<double>(phase) / static_cast<double>(up));
    out.samples.push_back(weighted(sound.samples, before - kernel.half() + 1, w));
  }
  return out;
}

}  // namespace hyperrun

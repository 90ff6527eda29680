#include "runtime/ir/rope.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace hyperrun {

std::vector<double> rope_frequencies(std::int64_t width, double theta, const RopeScaling& scaling) {
  std::vector<double> list;
  for (std::int64_t i = 0; i < width / 2; ++i) {
    const double as_it_was = std::pow(theta, -2.0 * static_cast<double>(i) / static_cast<double>(width));
    const double turns = scaling.original_sequence * as_it_was / (2 * std::numbers::pi);
    const double low = scaling.low_freq_factor, high = scaling.high_freq_factor;
    const double kept = std::clamp((turns - low) / (high - low), 0.0, 1.0);
    list.push_back(kept * as_it_was + (1 - kept) * as_it_was / scaling.factor);
  }
  return list;
}

}  // namespace hyperrun

#include "runtime/ir/rope.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace hyperrun {
namespace {

double turns_of(std::int64_t pair, std::int64_t width, double theta) {
  return std::pow(theta, -2.0 * static_cast<double>(pair) / static_cast<double>(width));
}

// The share of llama3's unscaled frequency in that of a pair.
double kept_by_cycles(const RopeScaling& s, double frequency) {
  const double cycles = s.original_sequence * frequency / (2 * std::numbers::pi);
  return std::clamp((cycles - s.low_freq_factor) / (s.high_freq_factor - s.low_freq_factor), 0.0, 1.0);
}

// The share of yarn's unscaled frequency in that of each pair.
class YarnLine {
 public:
  YarnLine(const RopeScaling& s, std::int64_t width, double theta) {
    const auto pair_of = [&](double cycles) {
      return static_cast<double>(width) * std::log(s.original_sequence / (cycles * 2 * std::numbers::pi)) /
             (2 * std::log(theta));
    };
    first_ = pair_of(s.beta_fast), last_ = pair_of(s.beta_slow);
    if (s.truncate) first_ = std::floor(first_), last_ = std::ceil(last_);
    first_ = std::max(first_, 0.0);
    last_ = std::min(last_, static_cast<double>(width - 1));
    if (first_ == last_) last_ += 0.001;  // a line needs two ends
  }
  double kept(std::int64_t pair) const {
    return 1 - std::clamp((static_cast<double>(pair) - first_) / (last_ - first_), 0.0, 1.0);
  }

 private:
  double first_ = 0, last_ = 0;
};

double theta_of_dynamic(const RopeScaling& s, std::int64_t width, double theta, std::int64_t longest) {
  const double n = static_cast<double>(width),
               ratio = static_cast<double>(std::max<std::int64_t>(longest, s.original_sequence)) /
                       std::max(1, s.original_sequence);
  return width > 2 ? theta * std::pow(s.factor * ratio - (s.factor - 1), n / (n - 2)) : theta;
}

double yarn_magnitude(double factor, double mscale) {
  return factor <= 1 ? 1 : 0.1 * mscale * std::log(factor) + 1;
}

}  // namespace

std::vector<double> rope_frequencies(std::int64_t width, double theta, const RopeScaling& s,
                                     std::int64_t longest) {
  if (s.type == kDynamicRope) theta = theta_of_dynamic(s, width, theta, longest);
  const YarnLine line(s, width, theta);
  const auto& factors = longest > s.original_sequence ? s.long_factor : s.short_factor;
  std::vector<double> list;
  for (std::int64_t i = 0; i < width / 2; ++i) {
    const double turns = turns_of(i, width, theta);
    double kept = 0, factor = s.factor;
    if (s.type == kDynamicRope) kept = 1;
    if (s.type == kLlama3Rope) kept = kept_by_cycles(s, turns);
    if (s.type == kYarnRope) kept = line.kept(i);
    if (s.type == kLongRope) factor = factors.at(static_cast<std::size_t>(i));
    list.push_back(kept * turns + (1 - kept) * turns / factor);
  }
  return list;
}

double rope_magnitude(const RopeScaling& s) {
  if (s.type != kYarnRope && s.type != kLongRope) return 1;
  if (s.attention_factor > 0) return s.attention_factor;
  if (s.type == kLongRope)
    return s.factor <= 1 ? 1 : std::sqrt(1 + std::log(s.factor) / std::log(s.original_sequence));
  if (s.mscale > 0 && s.mscale_all_dim > 0)
    return yarn_magnitude(s.factor, s.mscale) / yarn_magnitude(s.factor, s.mscale_all_dim);
  return yarn_magnitude(s.factor, 1);
}

double rope_score_factor(const RopeScaling& s) {
  if (s.type != kYarnRope || s.mscale_all_dim == 0) return 1;
  const double m = yarn_magnitude(s.factor, s.mscale_all_dim);
  return m * m;
}

}  // namespace hyperrun

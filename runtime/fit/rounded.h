#pragma once

#include <cmath>

namespace hyperrun {

// To four digits, which is more than a fitted number is worth.
inline double rounded(double v) {
  if (v == 0) return 0;
  const double unit = std::pow(10, std::floor(std::log10(std::abs(v))) - 3);
  return std::round(v / unit) * unit;
}

}  // namespace hyperrun

#pragma once

#include <algorithm>
#include <vector>

#include "runtime/base/error.h"

namespace hyperrun {

// The median of at least one value. For an even number of values it is the mean of the two in the middle.
inline double median(std::vector<double> values) {
  HR_CHECK(!values.empty());
  const auto middle = values.begin() + std::ssize(values) / 2;
  std::nth_element(values.begin(), middle, values.end());
  if (values.size() % 2 == 1) return *middle;
  return (*middle + *std::max_element(values.begin(), middle)) / 2;
}

}  // namespace hyperrun

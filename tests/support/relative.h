// The relative distance of two vectors: the norm of the difference over the norm of the first.
#pragma once

#include <cmath>
#include <limits>
#include <vector>

namespace hyperrun::testing {

template <class A, class B>
double relative(const std::vector<A>& expected, const std::vector<B>& actual) {
  if (expected.size() != actual.size()) return std::numeric_limits<double>::infinity();
  double difference = 0, norm = 0;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const auto e = static_cast<double>(expected[i]);
    difference += std::pow(e - static_cast<double>(actual[i]), 2);
    norm += e * e;
  }
  return norm == 0 ? std::sqrt(difference) : std::sqrt(difference / norm);
}

}  // namespace hyperrun::testing

#pragma once

#include <cstdint>
#include <vector>

namespace hyperrun {

// All divisors of n (at least 1), ascending: divisors(12) is 1, 2, 3, 4, 6, 12.
inline std::vector<std::int64_t> divisors(std::int64_t n) {
  std::vector<std::int64_t> low, high;
  for (std::int64_t d = 1; d * d <= n; ++d) {
    if (n % d != 0) continue;
    low.push_back(d);
    if (d * d != n) high.push_back(n / d);
  }
  low.insert(low.end(), high.rbegin(), high.rend());
  return low;
}

}  // namespace hyperrun

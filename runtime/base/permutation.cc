#include "runtime/base/permutation.h"

#include <algorithm>
#include <bit>

#include "runtime/base/error.h"

namespace hyperrun {
namespace {

constexpr int kRounds = 6;

}  // namespace

// A Feistel network over the smallest even number of bits that holds the range. A result outside the range is
// permuted again, fewer than four times on average; it comes back inside because the network is a bijection.
std::uint64_t permuted(std::uint64_t index, std::uint64_t size, std::uint64_t key) {
  HR_CHECK(index < size);
  const int half = std::max(1, (static_cast<int>(std::bit_width(size - 1)) + 1) / 2);
  const std::uint64_t mask = (std::uint64_t{1} << half) - 1;
  do {
    std::uint64_t left = index >> half, right = index & mask;
    for (int round = 0; round < kRounds; ++round) {
      const std::uint64_t swapped =
          left ^ (mix(key ^ mix(right + (static_cast<std::uint64_t>(round) << 56))) & mask);
      left = right;
      right = swapped;
    }
    index = (left << half) | right;
  } while (index >= size);
  return index;
}

}  // namespace hyperrun

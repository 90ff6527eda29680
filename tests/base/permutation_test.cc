#include "runtime/base/permutation.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <set>
#include <vector>

namespace hyperrun {
namespace {

TEST(Permuted, IsAPermutationForEverySize) {
  for (std::uint64_t size = 1; size < 300; ++size) {
    std::set<std::uint64_t> seen;
    for (std::uint64_t i = 0; i < size; ++i) {
      const std::uint64_t p = permuted(i, size, 42);
      ASSERT_LT(p, size);
      seen.insert(p);
    }
    ASSERT_EQ(seen.size(), size);
  }
}

// Under many keys the image of 0 is uniform, by chi-square with 15 degrees of freedom (37.7 is the 0.1 %
// level).
TEST(Permuted, SpreadsEvenly) {
  constexpr int kKeys = 16000, kSize = 16;
  std::vector<int> count(kSize);
  for (int key = 0; key < kKeys; ++key) ++count[permuted(0, kSize, static_cast<std::uint64_t>(key))];
  double chi = 0;
  for (const int c : count) chi += (c - kKeys / kSize) * (c - kKeys / kSize) / double(kKeys / kSize);
  EXPECT_LT(chi, 37.7);
}

}  // namespace
}  // namespace hyperrun

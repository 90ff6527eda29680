// The ranks of pairs of tokens, in a hash table whose entries take 8 bytes each, so that those of a large
// vocabulary stay in a core's cache: encoding is little else than looking pairs up.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "runtime/model/text/vocabulary.h"

namespace hyperrun {

class PairRanks {
 public:
  static constexpr std::int32_t kMostRanks = (1 << 20) - 1;

  // Makes room for `count` pairs, at most kMostRanks.
  explicit PairRanks(std::size_t count)
      : slots_(std::bit_ceil(count + count / 3 + 2), kEmpty),
        mask_(slots_.size() - 1),
        shift_(64 - static_cast<int>(std::bit_width(mask_))) {}

  // `rank` is below kMostRanks. The rank that a pair has already is replaced.
  void set(std::int32_t left, std::int32_t right, std::int32_t rank) {
    const std::uint64_t key = key_of(left, right);
    std::size_t at = place(key);
    while (slots_[at] != kEmpty && slots_[at] >> kRankBits != key) at = (at + 1) & mask_;
    slots_[at] = key << kRankBits | static_cast<std::uint32_t>(rank);
  }

  // -1: the pair is not there.
  std::int32_t find(std::int32_t left, std::int32_t right) const {
    const std::uint64_t key = key_of(left, right);
    for (std::size_t at = place(key);; at = (at + 1) & mask_) {
      if (slots_[at] == kEmpty) return -1;
      if (slots_[at] >> kRankBits == key) return static_cast<std::int32_t>(slots_[at] & kMostRanks);
    }
  }

 private:
  static constexpr int kRankBits = 20, kIdBits = 22;
  static constexpr std::uint64_t kEmpty = ~std::uint64_t{0};
  static_assert(Vocabulary::kMostTokens <= 1 << kIdBits);

  static std::uint64_t key_of(std::int32_t left, std::int32_t right) {
    return static_cast<std::uint64_t>(left) << kIdBits | static_cast<std::uint32_t>(right);
  }
  // The multiplication spreads keys over the high bits (Fibonacci hashing).
  std::size_t place(std::uint64_t key) const { return (key * 0x9E3779B97F4A7C15u) >> shift_; }

  std::vector<std::uint64_t> slots_;
  std::size_t mask_;
  int shift_;
};

}  // namespace hyperrun

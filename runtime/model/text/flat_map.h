// A hash table from 64-bit keys to values that are looked up far more often than added, in one array.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace hyperrun {

// The key ~0 is none: it marks an empty place.
template <class Value>
class FlatMap {
 public:
  explicit FlatMap(std::size_t expected = 0) { resize(expected); }

  // Null when the key is not there.
  const Value* find(std::uint64_t key) const {
    for (std::size_t at = place(key);; at = (at + 1) & mask_) {
      if (slots_[at].first == key) return &slots_[at].second;
      if (slots_[at].first == kEmpty) return nullptr;
    }
  }

  // The value of `key`, which is added with a default value when it is not there.
  Value& operator[](std::uint64_t key) {
    if ((size_ + 1) * 2 > slots_.size()) resize(size_ * 2);
    std::size_t at = place(key);
    while (slots_[at].first != key && slots_[at].first != kEmpty) at = (at + 1) & mask_;
    if (slots_[at].first == kEmpty) slots_[at].first = key, ++size_;
    return slots_[at].second;
  }

  std::size_t size() const { return size_; }

 private:
  static constexpr std::uint64_t kEmpty = ~std::uint64_t{0};

  std::size_t place(std::uint64_t key) const {
    // The multiplication spreads keys over the high bits (Fibonacci hashing).
    return (key * 0x9E3779B97F4A7C15u) >> shift_;
  }

  void resize(std::size_t expected) {
    std::vector<std::pair<std::uint64_t, Value>> old = std::move(slots_);
    const std::size_t size = std::bit_ceil(expected * 2 + 2);
    slots_.assign(size, {kEmpty, Value{}});
    mask_ = size - 1;
    shift_ = 64 - static_cast<int>(std::bit_width(mask_));
    for (auto& [key, value] : old) {
      if (key == kEmpty) continue;
      std::size_t at = place(key);
      while (slots_[at].first != kEmpty) at = (at + 1) & mask_;
      slots_[at] = {key, std::move(value)};
    }
  }

  std::vector<std::pair<std::uint64_t, Value>> slots_;
  std::size_t mask_ = 0, size_ = 0;
  int shift_ = 63;
};

}  // namespace hyperrun

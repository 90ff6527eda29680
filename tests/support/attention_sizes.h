// The sizes of an attention, and the index of each head's first number in its arrays.
#pragma once

#include <cstddef>
#include <cstdint>

namespace hyperrun::testing {

struct AttentionSizes {
  std::int64_t batch, seq, kv, group, dim, value_dim;
  std::size_t o(std::int64_t b, std::int64_t s, std::int64_t h, std::int64_t g) const {
    return static_cast<std::size_t>((((b * seq + s) * kv + h) * group + g) * value_dim);
  }
  std::size_t v(std::int64_t b, std::int64_t s, std::int64_t h) const {
    return static_cast<std::size_t>(((b * seq + s) * kv + h) * value_dim);
  }
  std::size_t q(std::int64_t b, std::int64_t s, std::int64_t h, std::int64_t g) const {
    return static_cast<std::size_t>((((b * seq + s) * kv + h) * group + g) * dim);
  }
  std::size_t k(std::int64_t b, std::int64_t s, std::int64_t h) const {
    return static_cast<std::size_t>(((b * seq + s) * kv + h) * dim);
  }
};

}  // namespace hyperrun::testing

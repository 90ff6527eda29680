// A box (hyperrectangle) in two row-major arrays, line by line.
#pragma once

#include <cstdint>
#include <span>

namespace hyperrun {

// Calls fn(from, to, n) for each run of n elements that are contiguous in both arrays; `from` and `to` are
// its offsets in them. The last strides are 1.
template <class Fn>
void each_line(std::span<const std::int64_t> size, std::span<const std::int64_t> from_strides,
               std::span<const std::int64_t> to_strides, Fn fn, std::int64_t from = 0, std::int64_t to = 0) {
  bool one_line = true;
  std::int64_t n = 1;
  for (std::size_t d = size.size(); d-- > 0; n *= size[d])
    one_line = one_line && (size[d] == 1 || (from_strides[d] == n && to_strides[d] == n));
  if (one_line) return fn(from, to, n);
  for (std::int64_t i = 0; i < size[0]; ++i)
    each_line(size.subspan(1), from_strides.subspan(1), to_strides.subspan(1), fn, from + i * from_strides[0],
              to + i * to_strides[0]);
}

}  // namespace hyperrun

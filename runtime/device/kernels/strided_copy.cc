#include "runtime/device/kernels/strided_copy.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <utility>

#include "runtime/base/error.h"
#include "runtime/device/kernels/elementwise.h"

namespace hyperrun::kernels {
namespace {

struct Dim {
  std::int64_t size = 1, from = 0, to = 0;
};
using Dims = std::array<Dim, kMaxCopyDims>;  // outermost first, size 1 in front where there are fewer

// Sorts the dimensions by the destination's strides, innermost last, so that writes go forward. Joins
// neighbours that are one run on both sides.
Dims normalise(std::span<const std::int64_t> shape, std::span<const std::int64_t> from,
               std::span<const std::int64_t> to) {
  Dims dims;
  std::size_t front = kMaxCopyDims;
  for (std::size_t i = 0; i < shape.size(); ++i) {
    if (shape[i] == 1) continue;
    std::size_t at = --front;
    for (; at + 1 < kMaxCopyDims && dims[at + 1].to > to[i]; ++at) dims[at] = dims[at + 1];
    dims[at] = {shape[i], from[i], to[i]};
  }
  std::size_t inner = kMaxCopyDims - 1;
  for (std::size_t i = inner; i-- > front;) {
    const Dim outer = std::exchange(dims[i], Dim{});
    if (outer.from == dims[inner].from * dims[inner].size && outer.to == dims[inner].to * dims[inner].size) {
      dims[inner].size *= outer.size;
    } else {
      dims[--inner] = outer;
    }
  }
  return dims;
}

template <class T>
void copy_run(const Dim& d, const T* from, T* to) {
  if (d.from == 1 && d.to == 1) {
    std::memcpy(to, from, static_cast<std::size_t>(d.size) * sizeof(T));
    return;
  }
  for (std::int64_t i = 0; i < d.size; ++i) to[i * d.to] = from[i * d.from];
}

template <class T>
void copy_dims(const Dims& d, const T* from, T* to) {
  for (std::int64_t a = 0; a < d[0].size; ++a) {
    for (std::int64_t b = 0; b < d[1].size; ++b) {
      for (std::int64_t c = 0; c < d[2].size; ++c) {
        const T* f = from + a * d[0].from + b * d[1].from + c * d[2].from;
        T* t = to + a * d[0].to + b * d[1].to + c * d[2].to;
        for (std::int64_t e = 0; e < d[3].size; ++e) copy_run(d[4], f + e * d[3].from, t + e * d[3].to);
      }
    }
  }
}

}  // namespace

void strided_copy(std::int64_t element_bytes, std::span<const std::int64_t> shape, const void* from,
                  std::span<const std::int64_t> from_strides, void* to,
                  std::span<const std::int64_t> to_strides) {
  HR_CHECK(element_bytes == 2 || element_bytes == 4, "elements of 2 or 4 bytes");
  HR_CHECK(shape.size() <= kMaxCopyDims, "more dimensions than a copy knows");
  HR_CHECK(from_strides.size() == shape.size() && to_strides.size() == shape.size());
  if (std::find(shape.begin(), shape.end(), 0) != shape.end()) return;
  const Dims dims = normalise(shape, from_strides, to_strides);
  if (element_bytes == 4) {
    copy_dims(dims, static_cast<const std::uint32_t*>(from), static_cast<std::uint32_t*>(to));
  } else {
    copy_dims(dims, static_cast<const std::uint16_t*>(from), static_cast<std::uint16_t*>(to));
  }
}

void strided_convert(std::span<const std::int64_t> shape, ConstArray from,
                     std::span<const std::int64_t> from_strides, Array to,
                     std::span<const std::int64_t> to_strides) {
  if (shape.empty()) return convert(1, from, to);
  if (shape.size() == 1) {
    HR_CHECK(from_strides[0] == 1 && to_strides[0] == 1, "elements of a row lie next to each other");
    return convert(shape[0], from, to);
  }
  for (std::int64_t i = 0; i < shape[0]; ++i)
    strided_convert(shape.subspan(1), from + i * from_strides[0], from_strides.subspan(1),
                    to + i * to_strides[0], to_strides.subspan(1));
}

void select_row(std::int64_t batch, std::int64_t seq_local, std::int64_t d, ConstArray x,
                std::int64_t seq_offset, std::int64_t position, Array out) {
  const std::int64_t row = position - seq_offset;
  for (std::int64_t b = 0; b < batch; ++b) {
    if (row >= 0 && row < seq_local) {
      copy(d, x + (b * seq_local + row) * d, out + b * d);
    } else {
      clear(d, out + b * d);
    }
  }
}

}  // namespace hyperrun::kernels

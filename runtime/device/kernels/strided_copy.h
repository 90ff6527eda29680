// Copies between layouts: slices, concatenations, transposes of up to five dimensions.
#pragma once

#include <cstdint>
#include <span>

#include "runtime/device/kernels/array.h"

namespace hyperrun::kernels {

inline constexpr std::int64_t kMaxCopyDims = 5;

// Copies to[sum i_d * to_strides[d]] = from[sum i_d * from_strides[d]] for all i in shape. Strides are in
// elements of element_bytes (2 or 4) and may be 0 on the source side (broadcast). The three spans have the
// same length, at most kMaxCopyDims; length 0 copies one element. The regions must not overlap.
void strided_copy(std::int64_t element_bytes, std::span<const std::int64_t> shape, const void* from,
                  std::span<const std::int64_t> from_strides, void* to,
                  std::span<const std::int64_t> to_strides);

// Copies from any format to any; the last strides are 1.
void strided_convert(std::span<const std::int64_t> shape, ConstArray from,
                     std::span<const std::int64_t> from_strides, Array to,
                     std::span<const std::int64_t> to_strides);

// Selects a row: out[b] = x[b, position], or zero if this device does not hold the position. x [batch,
// seq_local, d] holds positions [seq_offset, seq_offset + seq_local). out [batch, d], of x's format.
void select_row(std::int64_t batch, std::int64_t seq_local, std::int64_t d, ConstArray x,
                std::int64_t seq_offset, std::int64_t position, Array out);

}  // namespace hyperrun::kernels

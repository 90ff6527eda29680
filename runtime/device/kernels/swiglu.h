// The gate of Llama's feed-forward layer: h = silu(g) * u, silu(g) = g / (1 + exp(-g)). Arrays of a call have
// one format.
#pragma once

#include <cstdint>

#include "runtime/device/kernels/array.h"

namespace hyperrun::kernels {

// g, u: [rows, cols] with ld_gu elements from row to row (cols when each is contiguous, 2 * cols when they
// are the halves of one [rows, 2 * cols] buffer). h [rows, cols] contiguous.
void swiglu(std::int64_t rows, std::int64_t cols, ConstArray g, ConstArray u, std::int64_t ld_gu, Array h);

// dh [rows, cols] contiguous; dg, du laid out as g and u. dg may be g and du may be u.
void swiglu_backward(std::int64_t rows, std::int64_t cols, ConstArray g, ConstArray u, std::int64_t ld_gu,
                     ConstArray dh, Array dg, Array du);

}  // namespace hyperrun::kernels

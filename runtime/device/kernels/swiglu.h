// The gate of Llama's feed-forward layer: h = silu(g) * u, silu(g) = g / (1 + exp(-g)). Arrays of a call have
// one format.
#pragma once

#include <cstdint>

#include "runtime/device/kernels/array.h"

namespace hyperrun::kernels {

// Computes h [rows, cols], contiguous, from g and u: [rows, cols] with ld_gu elements from row to row (cols
// if each is contiguous, 2 * cols if they are the halves of one [rows, 2 * cols] buffer).
void swiglu(std::int64_t rows, std::int64_t cols, ConstArray g, ConstArray u, std::int64_t ld_gu, Array h);

// Computes dg and du, laid out as g and u, from dh [rows, cols], contiguous. dg may be g and du may be u.
void swiglu_backward(std::int64_t rows, std::int64_t cols, ConstArray g, ConstArray u, std::int64_t ld_gu,
                     ConstArray dh, Array dg, Array du);

}  // namespace hyperrun::kernels

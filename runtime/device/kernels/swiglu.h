// The gate of Llama's feed-forward layer: h = silu(g) * u, silu(g) = g / (1 + exp(-g)).
#pragma once

#include <cstdint>

namespace hyperrun::kernels {

// g, u: [rows, cols] with ld_gu elements from row to row (cols when each is contiguous, 2 * cols when they
// are the halves of one [rows, 2 * cols] buffer). h [rows, cols] contiguous.
void swiglu(std::int64_t rows, std::int64_t cols, const float* g, const float* u, std::int64_t ld_gu,
            float* h);

// dh [rows, cols] contiguous; dg, du laid out as g and u. dg may be g and du may be u.
void swiglu_backward(std::int64_t rows, std::int64_t cols, const float* g, const float* u, std::int64_t ld_gu,
                     const float* dh, float* dg, float* du);

}  // namespace hyperrun::kernels

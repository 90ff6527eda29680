// Matrix products of operands that are not all float32.
#pragma once

#include <cstdint>

#include "runtime/device/kernels/gemm.h"

namespace hyperrun::kernels {

// Computes gemm() for operands of any formats. Blocks of the operands are widened into a buffer of each
// thread, about 540 KiB (on an NPU they go through the cube unit's own buffers, not through HBM). A block of
// the result is summed up in float32 and rounded once.
void mixed_gemm(Trans trans_a, Trans trans_b, std::int64_t m, std::int64_t n, std::int64_t k, ConstArray a,
                std::int64_t lda, ConstArray b, std::int64_t ldb, float beta, Array c, std::int64_t ldc);

}  // namespace hyperrun::kernels

// Matrix products. This is the only user of OpenBLAS and its global state. If OpenBLAS uses narrower vectors
// than the processor has, products of our own (packed_gemm.h) take its place.
#pragma once

#include <cstdint>

#include "runtime/device/kernels/array.h"

namespace hyperrun::kernels {

enum class Trans : bool { kNo = false, kYes = true };

// Computes C[m,n] = op(A)[m,k] * op(B)[k,n] + beta * C, row-major. op transposes if asked, so A is stored
// [m,k] or [k,m] with lda elements between its rows, and so on. beta is 0 (C is not read, may hold NaN) or 1.
// C must not overlap A or B. Any of m, n, k may be 0; with k == 0 and beta == 0, C becomes zero. Sizes and
// leading dimensions must fit in 31 bits. m == 1 takes gemv.h. Each operand may have its own format.
//
// If packed_gemm_pays(), a row of the result has the same bits for any m >= 2.
void gemm(Trans trans_a, Trans trans_b, std::int64_t m, std::int64_t n, std::int64_t k, ConstArray a,
          std::int64_t lda, ConstArray b, std::int64_t ldb, float beta, Array c, std::int64_t ldc);

// True if OpenBLAS' vectors are narrower than this processor's, so that products are our own.
bool packed_gemm_pays();

}  // namespace hyperrun::kernels

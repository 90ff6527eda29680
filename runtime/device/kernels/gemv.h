// Products of one row with a matrix. No element of the matrix is used twice, so they go at the rate of
// memory.
#pragma once

#include <cstdint>

#include "runtime/device/kernels/gemm.h"

namespace hyperrun::kernels {

// Computes c[n] = a[k] * op(B), or += if `accumulate`. B is stored [k,n], or [n,k] if it is transposed, with
// ldb elements between its rows. n, k > 0. The order of each sum depends on k alone, so a slice of a product
// has the bits of the whole.
void gemv(Trans trans_b, std::int64_t n, std::int64_t k, const float* a, const float* b, std::int64_t ldb,
          bool accumulate, float* c);

}  // namespace hyperrun::kernels

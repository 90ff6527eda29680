// Matrix products of our own, in the widest vectors of the processor. gemm.cc chooses between them and
// OpenBLAS.
#pragma once

#include <cstdint>

#include "runtime/device/kernels/gemm.h"

namespace hyperrun::kernels {

// Number of floats in a vector of the chosen target.
std::int64_t packed_gemm_lanes();

// Computes gemm() for any m, n > 0 and k > 0. Each element is summed in the order of k for any m and n, so a
// slice of a product has the bits of the whole. Uses up to 1.2 MiB of a buffer of each thread.
void packed_gemm(Trans trans_a, Trans trans_b, std::int64_t m, std::int64_t n, std::int64_t k, const float* a,
                 std::int64_t lda, const float* b, std::int64_t ldb, float beta, float* c, std::int64_t ldc);

}  // namespace hyperrun::kernels

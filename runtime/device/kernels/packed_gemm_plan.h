// How packed_gemm cuts a product. The same for every vector target.
#pragma once

#include <array>
#include <cstdint>

#include "runtime/device/kernels/attention_plan.h"
#include "runtime/device/kernels/gemm.h"

namespace hyperrun::kernels {

// At most kDepth of k at a time: a panel of B, [depth][kPanel], stays in L2 while the strips of a block of A,
// kBlockRows rows, pass over it. It is read four vectors for every 24 products, which L2 has to give; less
// depth would keep it in L1, but C would be read and written the more often, and that costs more.
inline constexpr std::int64_t kDepth = 512;
inline constexpr std::int64_t kBlockRows = 86 * kStrip;

// For fewer rows than these a B that is not transposed is read where it lies, so many of its rows at a time.
inline constexpr std::int64_t kRowsInPlace = 4 * kStrip;
inline constexpr std::int64_t kDepthInPlace = 32;

// Fewer columns than these are computed as rows, so many rows of C at a time.
inline constexpr std::int64_t kFewColumns = 12;
inline constexpr std::int64_t kTurnedRows = 256;

struct PackedOperands {
  alignas(64) std::array<float, kBlockRows * kDepth> a;  // strips of kStrip rows
  alignas(64) std::array<float, kPanel * kDepth> b;
  alignas(64) std::array<float, kFewColumns * kTurnedRows> turned;
};

// The arguments of packed_gemm.
struct PackedGemm {
  Trans trans_a, trans_b;
  std::int64_t m, n, k;
  const float* a;
  std::int64_t lda;
  const float* b;
  std::int64_t ldb;
  float* c;
  std::int64_t ldc;
  bool accumulate;
};

}  // namespace hyperrun::kernels

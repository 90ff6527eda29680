// The blocking of packed_gemm. It is the same for every vector target.
#pragma once

#include <array>
#include <cstdint>

#include "runtime/device/kernels/attention_plan.h"
#include "runtime/device/kernels/gemm.h"

namespace hyperrun::kernels {

// Depth of k taken at a time. A panel of B, [depth][kPanel], stays in L2 while the strips of a block of A,
// kBlockRows rows, pass over it. L2 must give four vectors for every 24 products. A smaller depth would keep
// the panel in L1, but C would be read and written more often, which costs more.
inline constexpr std::int64_t kDepth = 512;
inline constexpr std::int64_t kBlockRows = 86 * kStrip;

// Below this number of rows a B that is not transposed is read in place, so many of its rows at a time.
inline constexpr std::int64_t kRowsInPlace = 4 * kStrip;
inline constexpr std::int64_t kDepthInPlace = 32;

// Below this number of columns C's transpose is computed, so many rows of C at a time.
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

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

struct PackedOperands {
  alignas(64) std::array<float, kBlockRows * kDepth> a;  // strips of kStrip rows
  alignas(64) std::array<float, kPanel * kDepth> b;
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

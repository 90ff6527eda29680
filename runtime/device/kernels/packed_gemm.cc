#include "runtime/device/kernels/packed_gemm.h"

#include <algorithm>
#include <cstring>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "runtime/device/kernels/packed_gemm.cc"
#include <hwy/foreach_target.h>  // must come before highway.h
#include <hwy/highway.h>

#include "runtime/device/kernels/packed_gemm_plan.h"
#include "runtime/device/kernels/product-inl.h"

HWY_BEFORE_NAMESPACE();
namespace hyperrun::kernels {
namespace HWY_NAMESPACE {

// How a strip of A lies once packed: rows one after the other, or, where A is transposed, columns of kStrip.
HWY_INLINE Left PackedStrip(Trans trans_a, const float* strip, std::int64_t depth) {
  return trans_a == Trans::kYes ? Left{strip, 1, kStrip} : Left{strip, depth, 1};
}

// Rows [row, row + rows) and columns [at, at + depth) of op(A).
HWY_INLINE void PackA(const PackedGemm& g, std::int64_t row, std::int64_t rows, std::int64_t at,
                      std::int64_t depth, float* to) {
  if (g.trans_a == Trans::kNo) {
    for (std::int64_t i = 0; i < rows; ++i, to += depth) {
      std::memcpy(to, g.a + (row + i) * g.lda + at, static_cast<std::size_t>(depth) * sizeof(float));
    }
    return;
  }
  for (std::int64_t p = 0; p < depth; ++p) {
    const float* from = g.a + (at + p) * g.lda + row;
    std::int64_t i = 0;
    for (; i + kStrip <= rows; i += kStrip) {
      std::memcpy(to + i * depth + p * kStrip, from + i, kStrip * sizeof(float));
    }
    for (std::int64_t r = i; r < rows; ++r) to[i * depth + p * kStrip + (r - i)] = from[r];
  }
}

// to[c][j] = from[j][c] for 4 rows j and 4 columns c.
HWY_INLINE void Transpose4x4(const float* HWY_RESTRICT from, std::int64_t ld, float* HWY_RESTRICT to) {
#if HWY_TARGET == HWY_SCALAR
  for (int j = 0; j < 4; ++j) {
    for (int c = 0; c < 4; ++c) to[c * kPanel + j] = from[j * ld + c];
  }
#else
  const hn::FixedTag<float, 4> d;
  const hn::Repartition<double, decltype(d)> wide;
  const auto r0 = hn::LoadU(d, from), r1 = hn::LoadU(d, from + ld), r2 = hn::LoadU(d, from + 2 * ld),
             r3 = hn::LoadU(d, from + 3 * ld);
  const auto a = hn::BitCast(wide, hn::InterleaveLower(d, r0, r1));
  const auto b = hn::BitCast(wide, hn::InterleaveLower(d, r2, r3));
  const auto e = hn::BitCast(wide, hn::InterleaveUpper(d, r0, r1));
  const auto f = hn::BitCast(wide, hn::InterleaveUpper(d, r2, r3));
  hn::StoreU(hn::BitCast(d, hn::InterleaveLower(wide, a, b)), d, to);
  hn::StoreU(hn::BitCast(d, hn::InterleaveUpper(wide, a, b)), d, to + kPanel);
  hn::StoreU(hn::BitCast(d, hn::InterleaveLower(wide, e, f)), d, to + 2 * kPanel);
  hn::StoreU(hn::BitCast(d, hn::InterleaveUpper(wide, e, f)), d, to + 3 * kPanel);
#endif
}

// Rows [at, at + depth) and columns [col, col + width) of op(B).
HWY_INLINE void PackB(const PackedGemm& g, std::int64_t col, std::int64_t width, std::int64_t at,
                      std::int64_t depth, float* to) {
  if (g.trans_b == Trans::kNo) {
    for (std::int64_t p = 0; p < depth; ++p) {
      std::memcpy(to + p * kPanel, g.b + (at + p) * g.ldb + col,
                  static_cast<std::size_t>(width) * sizeof(float));
    }
    return;
  }
  const float* from = g.b + col * g.ldb + at;
  const std::int64_t width4 = width / 4 * 4, depth4 = depth / 4 * 4;
  for (std::int64_t j = 0; j < width4; j += 4) {
    for (std::int64_t p = 0; p < depth4; p += 4)
      Transpose4x4(from + j * g.ldb + p, g.ldb, to + p * kPanel + j);
  }
  for (std::int64_t j = 0; j < width; ++j) {
    for (std::int64_t p = j < width4 ? depth4 : 0; p < depth; ++p) to[p * kPanel + j] = from[j * g.ldb + p];
  }
}

template <bool kAccumulate>
HWY_INLINE void MultiplyPanel(const PackedGemm& g, std::int64_t rows, std::int64_t width, std::int64_t depth,
                              const PackedOperands& packed, float* c) {
  for (std::int64_t i = 0; i < rows; i += kStrip) {
    Product<kAccumulate>(std::min(kStrip, rows - i), width, depth,
                         PackedStrip(g.trans_a, packed.a.data() + i * depth, depth), packed.b.data(), kPanel,
                         c + i * g.ldc, g.ldc);
  }
}

void Multiply(const PackedGemm& g, PackedOperands& packed) {
  for (std::int64_t row = 0; row < g.m; row += kBlockRows) {
    const std::int64_t rows = std::min(kBlockRows, g.m - row);
    for (std::int64_t at = 0; at < g.k; at += kDepth) {
      const std::int64_t depth = std::min(kDepth, g.k - at);
      PackA(g, row, rows, at, depth, packed.a.data());
      for (std::int64_t col = 0; col < g.n; col += kPanel) {
        const std::int64_t width = std::min(kPanel, g.n - col);
        PackB(g, col, width, at, depth, packed.b.data());
        float* c = g.c + row * g.ldc + col;
        if (g.accumulate || at > 0) {
          MultiplyPanel<true>(g, rows, width, depth, packed, c);
        } else {
          MultiplyPanel<false>(g, rows, width, depth, packed, c);
        }
      }
    }
  }
}

std::int64_t VectorLanes() { return static_cast<std::int64_t>(hn::Lanes(F32())); }

}  // namespace HWY_NAMESPACE
}  // namespace hyperrun::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include <memory>

namespace hyperrun::kernels {
namespace {
HWY_EXPORT(Multiply);
HWY_EXPORT(VectorLanes);
}  // namespace

std::int64_t packed_gemm_lanes() { return HWY_DYNAMIC_DISPATCH(VectorLanes)(); }

void packed_gemm(Trans trans_a, Trans trans_b, std::int64_t m, std::int64_t n, std::int64_t k, const float* a,
                 std::int64_t lda, const float* b, std::int64_t ldb, float beta, float* c, std::int64_t ldc) {
  thread_local const auto packed = std::make_unique<PackedOperands>();
  HWY_DYNAMIC_DISPATCH(Multiply)({trans_a, trans_b, m, n, k, a, lda, b, ldb, c, ldc, beta != 0.0F}, *packed);
}

}  // namespace hyperrun::kernels
#endif  // HWY_ONCE

#include "runtime/device/kernels/packed_gemm.h"

#include <algorithm>
#include <cstring>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "runtime/device/kernels/packed_gemm.cc"
#include <hwy/cache_control.h>
#include <hwy/foreach_target.h>  // must come before highway.h
#include <hwy/highway.h>

#include "runtime/device/kernels/packed_gemm_plan.h"
#include "runtime/device/kernels/product-inl.h"

HWY_BEFORE_NAMESPACE();
namespace hyperrun::kernels {
namespace HWY_NAMESPACE {

// Packs a strip of rows of A as contiguous columns of kStrip, which the product reads from one place.
HWY_INLINE void PackStrip(std::int64_t rows, std::int64_t depth, const float* from, std::int64_t lda,
                          float* to) {
  static_assert(kStrip == 6, "two transposes of 4 rows, which share two");
  std::int64_t p = 0;
  for (; rows == kStrip && p + 4 <= depth; p += 4) {
    Transpose4x4(from + p, lda, to + p * kStrip, kStrip);
    Transpose4x4(from + 2 * lda + p, lda, to + p * kStrip + 2, kStrip);
  }
  for (; p < depth; ++p) {
    for (std::int64_t r = 0; r < rows; ++r) to[p * kStrip + r] = from[r * lda + p];
  }
}

// Packs a strip from a transposed A.
HWY_INLINE void PackColumns(std::int64_t rows, std::int64_t depth, const float* from, std::int64_t lda,
                            float* to) {
  for (std::int64_t p = 0; p < depth; ++p, from += lda, to += kStrip) {
    if (rows == kStrip) {
      std::memcpy(to, from, kStrip * sizeof(float));
    } else {
      std::copy_n(from, rows, to);
    }
  }
}

// Packs rows [row, row + rows) and columns [at, at + depth) of op(A), strip by strip.
HWY_INLINE void PackA(const PackedGemm& g, std::int64_t row, std::int64_t rows, std::int64_t at,
                      std::int64_t depth, float* to) {
  if (g.trans_a == Trans::kNo) {
    for (std::int64_t i = 0; i < rows; i += kStrip)
      PackStrip(std::min(kStrip, rows - i), depth, g.a + (row + i) * g.lda + at, g.lda, to + i * depth);
    return;
  }
  // Take a few columns of all strips at a time: the beginnings of strips often share a few cache sets, and so
  // do the beginnings of rows.
  constexpr std::int64_t kColumns = 8;
  for (std::int64_t p = 0; p < depth; p += kColumns) {
    for (std::int64_t i = 0; i < rows; i += kStrip)
      PackColumns(std::min(kStrip, rows - i), std::min(kColumns, depth - p), g.a + (at + p) * g.lda + row + i,
                  g.lda, to + i * depth + p * kStrip);
  }
}

// Packs rows [at, at + depth) and columns [col, col + width) of op(B).
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
      Transpose4x4(from + j * g.ldb + p, g.ldb, to + p * kPanel + j, kPanel);
  }
  for (std::int64_t j = 0; j < width; ++j) {
    for (std::int64_t p = j < width4 ? depth4 : 0; p < depth; ++p) to[p * kPanel + j] = from[j * g.ldb + p];
  }
}

// Prefetches a strip of C, which is written some thousand cycles later.
HWY_INLINE void CallFor(std::int64_t rows, std::int64_t width, const float* c, std::int64_t ldc) {
  constexpr std::int64_t kLine = 64 / sizeof(float);
  for (std::int64_t r = 0; r < rows; ++r, c += ldc) {
    for (std::int64_t j = 0; j < width; j += kLine) hwy::Prefetch(c + j);
  }
}

template <bool kAccumulate>
HWY_INLINE void MultiplyPanel(const PackedGemm& g, std::int64_t rows, std::int64_t width, std::int64_t depth,
                              const PackedOperands& packed, float* c) {
  for (std::int64_t i = 0; i < rows; i += kStrip) {
    const std::int64_t height = std::min(kStrip, rows - i);
    CallFor(std::min(kStrip, rows - i - height), width, c + (i + height) * g.ldc, g.ldc);
    Product<kAccumulate>(height, width, depth, Left{packed.a.data() + i * depth, 1, kStrip}, packed.b.data(),
                         kPanel, c + i * g.ldc, g.ldc);
  }
}

// Depth of the pieces of k: equal pieces, at most kDepth each, in multiples of 4 for the transposes.
std::int64_t DepthOfPieces(std::int64_t k) {
  const std::int64_t pieces = (k + kDepth - 1) / kDepth;
  return std::min(kDepth, ((k + pieces - 1) / pieces + 3) / 4 * 4);
}

// Multiplies few rows with a B that is not transposed, in place: with so few uses a packed copy would not
// pay. B's rows are read in order, since a B that lies in no cache comes fastest so.
void MultiplyInPlace(const PackedGemm& g) {
  const bool columns = g.trans_a == Trans::kYes;
  for (std::int64_t at = 0; at < g.k; at += kDepthInPlace) {
    const std::int64_t depth = std::min(kDepthInPlace, g.k - at);
    for (std::int64_t col = 0; col < g.n; col += kPanel) {
      const std::int64_t width = std::min(kPanel, g.n - col);
      const float* b = g.b + at * g.ldb + col;
      for (std::int64_t row = 0; row < g.m; row += kStrip) {
        const std::int64_t height = std::min(kStrip, g.m - row);
        const Left left =
            columns ? Left{g.a + at * g.lda + row, 1, g.lda} : Left{g.a + row * g.lda + at, g.lda, 1};
        float* c = g.c + row * g.ldc + col;
        const auto product = g.accumulate || at > 0 ? Product<true> : Product<false>;
        product(height, width, depth, left, b, g.ldb, c, g.ldc);
      }
    }
  }
}

void MultiplyPacked(const PackedGemm& g, PackedOperands& packed) {
  const std::int64_t piece = DepthOfPieces(g.k);
  for (std::int64_t row = 0; row < g.m; row += kBlockRows) {
    const std::int64_t rows = std::min(kBlockRows, g.m - row);
    for (std::int64_t at = 0; at < g.k; at += piece) {
      const std::int64_t depth = std::min(piece, g.k - at);
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

HWY_INLINE Trans Turned(Trans t) { return t == Trans::kYes ? Trans::kNo : Trans::kYes; }

void MultiplyUpright(const PackedGemm& g, PackedOperands& packed) {
  const bool in_place = g.trans_b == Trans::kNo && g.m < kRowsInPlace;
  in_place ? MultiplyInPlace(g) : MultiplyPacked(g, packed);
}

// Computes C's transpose, which has few rows: few columns would leave most of a vector empty.
void MultiplyTurned(const PackedGemm& g, PackedOperands& packed) {
  float* turned = packed.turned.data();
  for (std::int64_t row = 0; row < g.m; row += kTurnedRows) {
    const std::int64_t rows = std::min(kTurnedRows, g.m - row);
    const float* a = g.a + row * (g.trans_a == Trans::kYes ? 1 : g.lda);
    float* c = g.c + row * g.ldc;
    for (std::int64_t i = 0; i < rows && g.accumulate; ++i) {
      for (std::int64_t j = 0; j < g.n; ++j) turned[j * kTurnedRows + i] = c[i * g.ldc + j];
    }
    MultiplyUpright({Turned(g.trans_b), Turned(g.trans_a), g.n, rows, g.k, g.b, g.ldb, a, g.lda, turned,
                     kTurnedRows, g.accumulate},
                    packed);
    for (std::int64_t i = 0; i < rows; ++i) {
      for (std::int64_t j = 0; j < g.n; ++j) c[i * g.ldc + j] = turned[j * kTurnedRows + i];
    }
  }
}

void Multiply(const PackedGemm& g, PackedOperands& packed) {
  (g.n < kFewColumns && g.m >= kRowsInPlace ? MultiplyTurned : MultiplyUpright)(g, packed);
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

#include "runtime/device/kernels/mixed_gemm.h"

#include <algorithm>
#include <array>
#include <memory>
#include <utility>

#include "runtime/device/kernels/elementwise.h"

namespace hyperrun::kernels {
namespace {

// Sides of a block of the result, and depth of the sum at a time. All three blocks stay in L2, and an element
// is widened once for kSide multiplications.
constexpr std::int64_t kSide = 192, kDepth = 256;

struct Widened {
  alignas(64) std::array<float, kSide * kDepth> a;
  alignas(64) std::array<float, kSide * kDepth> b;
  alignas(64) std::array<float, kSide * kSide> c;
};

struct Block {
  const float* at;
  std::int64_t stride;
};

// [rows, cols] as floats: in place, or copied to `room`.
Block widen(std::int64_t rows, std::int64_t cols, ConstArray from, std::int64_t stride, float* room) {
  if (from.dtype() == DType::kF32) return {from.as<float>(), stride};
  for (std::int64_t row = 0; row < rows; ++row) convert(cols, from + row * stride, room + row * cols);
  return {room, cols};
}

// Rows [row, row + rows) and columns [col, col + cols) of op(x).
Block operand(Trans trans, std::int64_t row, std::int64_t rows, std::int64_t col, std::int64_t cols,
              ConstArray x, std::int64_t ld, float* room) {
  if (trans == Trans::kYes) std::swap(row, col), std::swap(rows, cols);
  return widen(rows, cols, x + (row * ld + col), ld, room);
}

}  // namespace

void mixed_gemm(Trans trans_a, Trans trans_b, std::int64_t m, std::int64_t n, std::int64_t k, ConstArray a,
                std::int64_t lda, ConstArray b, std::int64_t ldb, float beta, Array c, std::int64_t ldc) {
  thread_local const auto widened = std::make_unique<Widened>();
  Widened& w = *widened;
  const bool in_place = c.dtype() == DType::kF32;
  for (std::int64_t row = 0; row < m; row += kSide) {
    const std::int64_t rows = std::min(kSide, m - row);
    for (std::int64_t col = 0; col < n; col += kSide) {
      const std::int64_t cols = std::min(kSide, n - col);
      const Array to = c + (row * ldc + col);
      float* sum = in_place ? to.as<float>() : w.c.data();
      const std::int64_t stride = in_place ? ldc : cols;
      if (!in_place && beta != 0.0F) widen(rows, cols, to, ldc, sum);
      std::int64_t at = 0;
      do {  // at least once: a sum of nothing is zero
        const std::int64_t depth = std::min(kDepth, k - at);
        const Block left = operand(trans_a, row, rows, at, depth, a, lda, w.a.data());
        const Block right = operand(trans_b, at, depth, col, cols, b, ldb, w.b.data());
        gemm(trans_a, trans_b, rows, cols, depth, left.at, left.stride, right.at, right.stride,
             at == 0 ? beta : 1.0F, sum, stride);
        at += depth;
      } while (at < k);
      for (std::int64_t i = 0; i < rows && !in_place; ++i) convert(cols, sum + i * cols, to + i * ldc);
    }
  }
}

}  // namespace hyperrun::kernels

#include "runtime/device/kernels/rope.h"

#include <cmath>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "runtime/device/kernels/rope.cc"
#include <hwy/foreach_target.h>  // must come before highway.h
#include <hwy/highway.h>

#include "runtime/device/kernels/vector-inl.h"

HWY_BEFORE_NAMESPACE();
namespace hyperrun::kernels {
namespace HWY_NAMESPACE {

template <bool kInverse, Number T>
HWY_INLINE void RotateHead(std::int64_t half, const T* x, const float* HWY_RESTRICT cos,
                           const float* HWY_RESTRICT sin, T* y) {
  ForEach(half, [=](auto d, std::int64_t i) HWY_ATTR {
    const auto a = LoadFloats(d, x + i), b = LoadFloats(d, x + half + i);
    const auto c = LoadFloats(d, cos + i);
    auto s = LoadFloats(d, sin + i);
    if constexpr (kInverse) s = hn::Neg(s);
    StoreFloats(hn::NegMulAdd(b, s, hn::Mul(a, c)), d, y + i);
    StoreFloats(hn::MulAdd(a, s, hn::Mul(b, c)), d, y + half + i);
  });
}

template <bool kInverse, Number T>
void RotateRows(std::int64_t rows, std::int64_t seq, std::int64_t heads, std::int64_t head_dim, const T* x,
                std::int64_t ldx, const float* table, T* y, std::int64_t ldy) {
  const std::int64_t half = head_dim / 2;
  for (std::int64_t row = 0; row < rows; ++row) {
    const float* cos = table + row % seq * head_dim;
    for (std::int64_t h = 0; h < heads; ++h) {
      RotateHead<kInverse>(half, x + row * ldx + h * head_dim, cos, cos + half, y + row * ldy + h * head_dim);
    }
  }
}

void Rope(Rotate direction, std::int64_t rows, std::int64_t seq, std::int64_t heads, std::int64_t head_dim,
          ConstArray x, std::int64_t ldx, const float* table, Array y, std::int64_t ldy) {
  typed(y.dtype(), [&]<class T>(T) {
    if (direction == Rotate::kInverse) {
      RotateRows<true>(rows, seq, heads, head_dim, x.as<T>(), ldx, table, y.as<T>(), ldy);
    } else {
      RotateRows<false>(rows, seq, heads, head_dim, x.as<T>(), ldx, table, y.as<T>(), ldy);
    }
  });
}

}  // namespace HWY_NAMESPACE
}  // namespace hyperrun::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace hyperrun::kernels {
namespace {
HWY_EXPORT(Rope);
}  // namespace

void rope_table(std::int64_t start, std::int64_t positions, std::int64_t head_dim, double theta,
                float* table) {
  const std::int64_t half = head_dim / 2;
  for (std::int64_t i = 0; i < half; ++i) {
    const double frequency = std::pow(theta, -2.0 * static_cast<double>(i) / static_cast<double>(head_dim));
    for (std::int64_t p = 0; p < positions; ++p) {
      const double angle = static_cast<double>(start + p) * frequency;
      table[p * head_dim + i] = static_cast<float>(std::cos(angle));
      table[p * head_dim + half + i] = static_cast<float>(std::sin(angle));
    }
  }
}

void rope(Rotate direction, std::int64_t rows, std::int64_t seq, std::int64_t heads, std::int64_t head_dim,
          ConstArray x, std::int64_t ldx, const float* table, Array y, std::int64_t ldy) {
  HWY_DYNAMIC_DISPATCH(Rope)(direction, rows, seq, heads, head_dim, x, ldx, table, y, ldy);
}

}  // namespace hyperrun::kernels
#endif  // HWY_ONCE

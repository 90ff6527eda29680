#include "runtime/device/kernels/norm.h"

#include <cmath>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "runtime/device/kernels/norm.cc"
#include <hwy/foreach_target.h>  // must come before highway.h
#include <hwy/highway.h>

#include "runtime/device/kernels/vector-inl.h"

HWY_BEFORE_NAMESPACE();
namespace hyperrun::kernels {
namespace HWY_NAMESPACE {

float Rstd(const NormShape& s, float squares) {
  return 1.0F / std::sqrt(squares / static_cast<float>(s.whole) + s.eps);
}

void RowSquares(std::int64_t rows, std::int64_t n, const float* x, float* squares) {
  for (std::int64_t row = 0; row < rows; ++row) {
    squares[row] = SumOver(n, [=](auto d, std::int64_t i) HWY_ATTR {
      const auto v = hn::LoadU(d, x + row * n + i);
      return hn::Mul(v, v);
    });
  }
}

void RmsNorm(const NormShape& s, const float* x, const float* HWY_RESTRICT w, const float* squares,
             float* y) {
  for (std::int64_t row = 0; row < s.rows; ++row) {
    const float r = Rstd(s, squares[row]);
    const std::int64_t at = row * s.width;
    ForEach(s.width, [=](auto d, std::int64_t i) HWY_ATTR {
      const auto v = hn::Mul(hn::LoadU(d, x + at + i), hn::Set(d, r));
      hn::StoreU(hn::Mul(v, hn::LoadU(d, w + i)), d, y + at + i);
    });
  }
}

void RmsNormDots(std::int64_t rows, std::int64_t n, const float* dy, const float* x, const float* w,
                 float* dots) {
  for (std::int64_t row = 0; row < rows; ++row) {
    dots[row] = SumOver(n, [=](auto d, std::int64_t i) HWY_ATTR {
      return hn::Mul(hn::Mul(hn::LoadU(d, dy + row * n + i), hn::LoadU(d, w + i)),
                     hn::LoadU(d, x + row * n + i));
    });
  }
}

// dx = [addend +] r w dy - x r^3 / n dot;  dw += r x dy.
template <bool kAddend>
HWY_INLINE void RowBackward(std::int64_t n, const float* dy, const float* x, const float* HWY_RESTRICT w,
                            float r, float pull, const float* addend, float* dx, float* HWY_RESTRICT dw) {
  ForEach(n, [=](auto d, std::int64_t i) HWY_ATTR {
    const auto xi = hn::LoadU(d, x + i);
    const auto rdy = hn::Mul(hn::LoadU(d, dy + i), hn::Set(d, r));
    auto g = hn::Mul(rdy, hn::LoadU(d, w + i));
    if constexpr (kAddend) g = hn::Add(g, hn::LoadU(d, addend + i));
    hn::StoreU(hn::MulAdd(rdy, xi, hn::LoadU(d, dw + i)), d, dw + i);
    hn::StoreU(hn::NegMulAdd(xi, hn::Set(d, pull), g), d, dx + i);
  });
}

void RmsNormBackward(const NormShape& s, const float* dy, const float* x, const float* w,
                     const float* squares, const float* dots, const float* addend, float* dx, float* dw) {
  for (std::int64_t row = 0; row < s.rows; ++row) {
    const std::int64_t at = row * s.width;
    const float r = Rstd(s, squares[row]);
    const float pull = dots[row] * r * r * r / static_cast<float>(s.whole);
    if (addend != nullptr) {
      RowBackward<true>(s.width, dy + at, x + at, w, r, pull, addend + at, dx + at, dw);
    } else {
      RowBackward<false>(s.width, dy + at, x + at, w, r, pull, nullptr, dx + at, dw);
    }
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace hyperrun::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "runtime/device/kernels/elementwise.h"

namespace hyperrun::kernels {
namespace {
HWY_EXPORT(RowSquares);
HWY_EXPORT(RmsNorm);
HWY_EXPORT(RmsNormDots);
HWY_EXPORT(RmsNormBackward);
}  // namespace

void row_squares(std::int64_t rows, std::int64_t width, const float* x, float* squares) {
  HWY_DYNAMIC_DISPATCH(RowSquares)(rows, width, x, squares);
}

void rms_norm(const NormShape& shape, const float* x, const float* w, const float* squares, float* y) {
  HWY_DYNAMIC_DISPATCH(RmsNorm)(shape, x, w, squares, y);
}

void rms_norm_dots(std::int64_t rows, std::int64_t width, const float* dy, const float* x, const float* w,
                   float* dots) {
  HWY_DYNAMIC_DISPATCH(RmsNormDots)(rows, width, dy, x, w, dots);
}

void rms_norm_backward(const NormShape& shape, const float* dy, const float* x, const float* w,
                       const float* squares, const float* dots, const float* addend, float* dx, float* dw,
                       bool accumulate_dw) {
  if (!accumulate_dw) fill(shape.width, 0.0F, dw);
  HWY_DYNAMIC_DISPATCH(RmsNormBackward)(shape, dy, x, w, squares, dots, addend, dx, dw);
}

}  // namespace hyperrun::kernels
#endif  // HWY_ONCE

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

template <Number T>
void RowSquaresAs(std::int64_t rows, std::int64_t n, const T* x, float* squares) {
  for (std::int64_t row = 0; row < rows; ++row) {
    squares[row] = SumOver(n, [=](auto d, std::int64_t i) HWY_ATTR {
      const auto v = LoadFloats(d, x + row * n + i);
      return hn::Mul(v, v);
    });
  }
}

template <Number T>
void RmsNormAs(const NormShape& s, const T* x, const T* HWY_RESTRICT w, const float* squares, T* y) {
  for (std::int64_t row = 0; row < s.rows; ++row) {
    const float r = Rstd(s, squares[row]);
    const std::int64_t at = row * s.width;
    ForEach(s.width, [=](auto d, std::int64_t i) HWY_ATTR {
      const auto v = hn::Mul(LoadFloats(d, x + at + i), hn::Set(d, r));
      StoreFloats(hn::Mul(v, LoadFloats(d, w + i)), d, y + at + i);
    });
  }
}

template <Number T>
void RmsNormDotsAs(std::int64_t rows, std::int64_t n, const T* dy, const T* x, const T* w, float* dots) {
  for (std::int64_t row = 0; row < rows; ++row) {
    dots[row] = SumOver(n, [=](auto d, std::int64_t i) HWY_ATTR {
      return hn::Mul(hn::Mul(LoadFloats(d, dy + row * n + i), LoadFloats(d, w + i)),
                     LoadFloats(d, x + row * n + i));
    });
  }
}

// dx = [addend +] r w dy - x r^3 / n dot;  dw += r x dy.
template <bool kAddend, Number T>
HWY_INLINE void RowBackward(std::int64_t n, const T* dy, const T* x, const T* HWY_RESTRICT w, float r,
                            float pull, const T* addend, T* dx, float* HWY_RESTRICT dw) {
  ForEach(n, [=](auto d, std::int64_t i) HWY_ATTR {
    const auto xi = LoadFloats(d, x + i);
    const auto rdy = hn::Mul(LoadFloats(d, dy + i), hn::Set(d, r));
    auto g = hn::Mul(rdy, LoadFloats(d, w + i));
    if constexpr (kAddend) g = hn::Add(g, LoadFloats(d, addend + i));
    StoreFloats(hn::MulAdd(rdy, xi, LoadFloats(d, dw + i)), d, dw + i);
    StoreFloats(hn::NegMulAdd(xi, hn::Set(d, pull), g), d, dx + i);
  });
}

template <Number T>
void RmsNormBackwardAs(const NormShape& s, const T* dy, const T* x, const T* w, const float* squares,
                       const float* dots, const T* addend, T* dx, float* dw) {
  for (std::int64_t row = 0; row < s.rows; ++row) {
    const std::int64_t at = row * s.width;
    const float r = Rstd(s, squares[row]);
    const float pull = dots[row] * r * r * r / static_cast<float>(s.whole);
    if (addend != nullptr) {
      RowBackward<true>(s.width, dy + at, x + at, w, r, pull, addend + at, dx + at, dw);
    } else {
      RowBackward<false>(s.width, dy + at, x + at, w, r, pull, addend, dx + at, dw);
    }
  }
}

void RowSquares(std::int64_t rows, std::int64_t n, ConstArray x, float* squares) {
  typed(x.dtype(), [&]<class T>(T) { RowSquaresAs(rows, n, x.as<T>(), squares); });
}

void RmsNorm(const NormShape& s, ConstArray x, ConstArray w, const float* squares, Array y) {
  typed(y.dtype(), [&]<class T>(T) { RmsNormAs(s, x.as<T>(), w.as<T>(), squares, y.as<T>()); });
}

void RmsNormDots(std::int64_t rows, std::int64_t n, ConstArray dy, ConstArray x, ConstArray w, float* dots) {
  typed(x.dtype(), [&]<class T>(T) { RmsNormDotsAs(rows, n, dy.as<T>(), x.as<T>(), w.as<T>(), dots); });
}

void RmsNormBackward(const NormShape& s, ConstArray dy, ConstArray x, ConstArray w, const float* squares,
                     const float* dots, ConstArray addend, Array dx, float* dw) {
  typed(dx.dtype(), [&]<class T>(T) {
    RmsNormBackwardAs(s, dy.as<T>(), x.as<T>(), w.as<T>(), squares, dots, addend.as<T>(), dx.as<T>(), dw);
  });
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

void row_squares(std::int64_t rows, std::int64_t width, ConstArray x, float* squares) {
  HWY_DYNAMIC_DISPATCH(RowSquares)(rows, width, x, squares);
}

void rms_norm(const NormShape& shape, ConstArray x, ConstArray w, const float* squares, Array y) {
  HWY_DYNAMIC_DISPATCH(RmsNorm)(shape, x, w, squares, y);
}

void rms_norm_dots(std::int64_t rows, std::int64_t width, ConstArray dy, ConstArray x, ConstArray w,
                   float* dots) {
  HWY_DYNAMIC_DISPATCH(RmsNormDots)(rows, width, dy, x, w, dots);
}

void rms_norm_backward(const NormShape& shape, ConstArray dy, ConstArray x, ConstArray w,
                       const float* squares, const float* dots, ConstArray addend, Array dx, float* dw,
                       bool accumulate_dw) {
  if (!accumulate_dw) fill(shape.width, 0.0F, dw);
  HWY_DYNAMIC_DISPATCH(RmsNormBackward)(shape, dy, x, w, squares, dots, addend, dx, dw);
}

}  // namespace hyperrun::kernels
#endif  // HWY_ONCE

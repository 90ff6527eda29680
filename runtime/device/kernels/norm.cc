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

// The mean of a row; 0 for a norm that is not centered, which changes no bit when subtracted.
float Mean(const NormShape& s, const float* sums, std::int64_t row) {
  return sums == nullptr ? 0.0F : sums[row] / static_cast<float>(s.whole);
}

template <Number T>
void RowSumsAs(std::int64_t rows, std::int64_t n, const T* x, float* sums) {
  for (std::int64_t row = 0; row < rows; ++row)
    sums[row] = SumOver(n, [=](auto d, std::int64_t i) HWY_ATTR { return LoadFloats(d, x + row * n + i); });
}

template <Number T>
void RowSquaresAs(const NormShape& s, const T* x, const float* sums, float* squares) {
  for (std::int64_t row = 0; row < s.rows; ++row) {
    const float mean = Mean(s, sums, row);
    const std::int64_t at = row * s.width;
    squares[row] = SumOver(s.width, [=](auto d, std::int64_t i) HWY_ATTR {
      const auto v = hn::Sub(LoadFloats(d, x + at + i), hn::Set(d, mean));
      return hn::Mul(v, v);
    });
  }
}

template <bool kBias, Number T>
HWY_INLINE void RowForward(std::int64_t n, const T* x, const T* HWY_RESTRICT w, float r, float mean,
                           const T* HWY_RESTRICT bias, T* y) {
  ForEach(n, [=](auto d, std::int64_t i) HWY_ATTR {
    const auto centered = hn::Sub(LoadFloats(d, x + i), hn::Set(d, mean));
    auto v = hn::Mul(hn::Mul(centered, hn::Set(d, r)), LoadFloats(d, w + i));
    if constexpr (kBias) v = hn::Add(v, LoadFloats(d, bias + i));
    StoreFloats(v, d, y + i);
  });
}

template <Number T>
void NormAs(const NormShape& s, const T* x, const T* w, const float* squares, const float* sums,
            const T* bias, T* y) {
  for (std::int64_t row = 0; row < s.rows; ++row) {
    const float r = Rstd(s, squares[row]), mean = Mean(s, sums, row);
    const std::int64_t at = row * s.width;
    if (bias != nullptr) {
      RowForward<true>(s.width, x + at, w, r, mean, bias, y + at);
    } else {
      RowForward<false>(s.width, x + at, w, r, mean, bias, y + at);
    }
  }
}

template <Number T>
void NormDotsAs(const NormShape& s, const T* dy, const T* x, const T* w, const float* sums, float* dots,
                float* dot_sums) {
  for (std::int64_t row = 0; row < s.rows; ++row) {
    const float mean = Mean(s, sums, row);
    const std::int64_t at = row * s.width;
    dots[row] = SumOver(s.width, [=](auto d, std::int64_t i) HWY_ATTR {
      return hn::Mul(hn::Mul(LoadFloats(d, dy + at + i), LoadFloats(d, w + i)),
                     hn::Sub(LoadFloats(d, x + at + i), hn::Set(d, mean)));
    });
    if (dot_sums == nullptr) continue;
    dot_sums[row] = SumOver(s.width, [=](auto d, std::int64_t i) HWY_ATTR {
      return hn::Mul(LoadFloats(d, dy + at + i), LoadFloats(d, w + i));
    });
  }
}

// Figures of a row that its gradient needs.
struct NormRow {
  float r, mean;
  float pull;   // r^3 times the mean of dy x w
  float shift;  // r times the mean of dy w
};

// The gradient, with x centered: dx = [addend +] r w dy - shift - x pull;  dw += r x dy.
template <bool kAddend, Number T>
HWY_INLINE void RowBackward(std::int64_t n, const T* dy, const T* x, const T* HWY_RESTRICT w,
                            const NormRow& row, const T* addend, T* dx, float* HWY_RESTRICT dw) {
  ForEach(n, [=](auto d, std::int64_t i) HWY_ATTR {
    const auto xi = hn::Sub(LoadFloats(d, x + i), hn::Set(d, row.mean));
    const auto rdy = hn::Mul(LoadFloats(d, dy + i), hn::Set(d, row.r));
    auto g = hn::Sub(hn::Mul(rdy, LoadFloats(d, w + i)), hn::Set(d, row.shift));
    if constexpr (kAddend) g = hn::Add(g, LoadFloats(d, addend + i));
    StoreFloats(hn::MulAdd(rdy, xi, LoadFloats(d, dw + i)), d, dw + i);
    StoreFloats(hn::NegMulAdd(xi, hn::Set(d, row.pull), g), d, dx + i);
  });
}

template <Number T>
void NormBackwardAs(const NormShape& s, const T* dy, const T* x, const T* w, const NormSums& of_rows,
                    const NormMeans& means, const T* addend, T* dx, float* dw) {
  for (std::int64_t i = 0; i < s.rows; ++i) {
    const std::int64_t at = i * s.width;
    const float r = Rstd(s, of_rows.squares[i]);
    const NormRow row{.r = r,
                      .mean = Mean(s, means.sums, i),
                      .pull = of_rows.dots[i] * r * r * r / static_cast<float>(s.whole),
                      .shift = r * Mean(s, means.dot_sums, i)};
    if (addend != nullptr) {
      RowBackward<true>(s.width, dy + at, x + at, w, row, addend + at, dx + at, dw);
    } else {
      RowBackward<false>(s.width, dy + at, x + at, w, row, addend, dx + at, dw);
    }
  }
}

void RowSums(std::int64_t rows, std::int64_t n, ConstArray x, float* sums) {
  typed(x.dtype(), [&]<class T>(T) { RowSumsAs(rows, n, x.as<T>(), sums); });
}

void RowSquares(const NormShape& s, ConstArray x, const float* sums, float* squares) {
  typed(x.dtype(), [&]<class T>(T) { RowSquaresAs(s, x.as<T>(), sums, squares); });
}

void Norm(const NormShape& s, ConstArray x, ConstArray w, const float* squares, const float* sums,
          ConstArray bias, Array y) {
  typed(y.dtype(),
        [&]<class T>(T) { NormAs(s, x.as<T>(), w.as<T>(), squares, sums, bias.as<T>(), y.as<T>()); });
}

void NormDots(const NormShape& s, ConstArray dy, ConstArray x, ConstArray w, const float* sums, float* dots,
              float* dot_sums) {
  typed(x.dtype(),
        [&]<class T>(T) { NormDotsAs(s, dy.as<T>(), x.as<T>(), w.as<T>(), sums, dots, dot_sums); });
}

void NormBackward(const NormShape& s, ConstArray dy, ConstArray x, ConstArray w, const NormSums& of_rows,
                  const NormMeans& means, ConstArray addend, Array dx, float* dw) {
  typed(dx.dtype(), [&]<class T>(T) {
    NormBackwardAs(s, dy.as<T>(), x.as<T>(), w.as<T>(), of_rows, means, addend.as<T>(), dx.as<T>(), dw);
  });
}

}  // namespace HWY_NAMESPACE
}  // namespace hyperrun::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "runtime/device/kernels/elementwise.h"

namespace hyperrun::kernels {
namespace {
HWY_EXPORT(RowSums);
HWY_EXPORT(RowSquares);
HWY_EXPORT(Norm);
HWY_EXPORT(NormDots);
HWY_EXPORT(NormBackward);
}  // namespace

void row_sums(std::int64_t rows, std::int64_t width, ConstArray x, float* sums) {
  HWY_DYNAMIC_DISPATCH(RowSums)(rows, width, x, sums);
}

void row_squares(const NormShape& shape, ConstArray x, const float* sums, float* squares) {
  HWY_DYNAMIC_DISPATCH(RowSquares)(shape, x, sums, squares);
}

void norm(const NormShape& shape, ConstArray x, ConstArray w, const float* squares, const float* sums,
          ConstArray bias, Array y) {
  HWY_DYNAMIC_DISPATCH(Norm)(shape, x, w, squares, sums, bias, y);
}

void norm_dots(const NormShape& shape, ConstArray dy, ConstArray x, ConstArray w, const float* sums,
               float* dots, float* dot_sums) {
  HWY_DYNAMIC_DISPATCH(NormDots)(shape, dy, x, w, sums, dots, dot_sums);
}

void norm_backward(const NormShape& shape, ConstArray dy, ConstArray x, ConstArray w, const NormSums& of_rows,
                   const NormMeans& means, ConstArray addend, Array dx, float* dw, bool accumulate_dw) {
  if (!accumulate_dw) fill(shape.width, 0.0F, dw);
  HWY_DYNAMIC_DISPATCH(NormBackward)(shape, dy, x, w, of_rows, means, addend, dx, dw);
}

}  // namespace hyperrun::kernels
#endif  // HWY_ONCE

#include "runtime/device/kernels/elementwise.h"

#include <cstring>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "runtime/device/kernels/elementwise.cc"
#include <hwy/foreach_target.h>  // must come before highway.h
#include <hwy/highway.h>

#include "runtime/device/kernels/exp-inl.h"
#include "runtime/device/kernels/vector-inl.h"

HWY_BEFORE_NAMESPACE();
namespace hyperrun::kernels {
namespace HWY_NAMESPACE {

template <Number T>
void AddAs(std::int64_t n, const T* a, const T* b, T* out) {
  ForEach(n, [=](auto d, std::int64_t i)
                 HWY_ATTR { StoreFloats(hn::Add(LoadFloats(d, a + i), LoadFloats(d, b + i)), d, out + i); });
}
void Add(std::int64_t n, ConstArray a, ConstArray b, Array out) {
  typed(out.dtype(), [&]<class T>(T) { AddAs(n, a.as<T>(), b.as<T>(), out.as<T>()); });
}

template <Number T>
void AccumulateAs(std::int64_t n, const T* b, float* a) {
  ForEach(n, [=](auto d, std::int64_t i)
                 HWY_ATTR { StoreFloats(hn::Add(LoadFloats(d, a + i), LoadFloats(d, b + i)), d, a + i); });
}
void Accumulate(std::int64_t n, ConstArray b, float* a) {
  typed(b.dtype(), [&]<class T>(T) { AccumulateAs(n, b.as<T>(), a); });
}

template <Number T>
void ScaleAs(std::int64_t n, float factor, T* a) {
  ForEach(n, [=](auto d, std::int64_t i)
                 HWY_ATTR { StoreFloats(hn::Mul(LoadFloats(d, a + i), hn::Set(d, factor)), d, a + i); });
}
void Scale(std::int64_t n, float factor, Array a) {
  typed(a.dtype(), [&]<class T>(T) { ScaleAs(n, factor, a.as<T>()); });
}

template <Number From, Number To>
void ConvertAs(std::int64_t n, const From* from, To* to) {
  ForEach(n, [=](auto d, std::int64_t i) HWY_ATTR { StoreFloats(LoadFloats(d, from + i), d, to + i); });
}
void Convert(std::int64_t n, ConstArray from, Array to) {
  typed(from.dtype(), [&]<class From>(From) {
    typed(to.dtype(), [&]<class To>(To) { ConvertAs(n, from.as<From>(), to.as<To>()); });
  });
}

void Fill(std::int64_t n, float value, float* a) {
  ForEach(n, [=](auto d, std::int64_t i) HWY_ATTR { hn::StoreU(hn::Set(d, value), d, a + i); });
}

void ExpArray(std::int64_t n, const float* x, float* y) {
  ForEach(n, [=](auto d, std::int64_t i) HWY_ATTR { hn::StoreU(Exp(d, hn::LoadU(d, x + i)), d, y + i); });
}

float SumSquares(std::int64_t n, const float* x) {
  const hn::ScalableTag<double> dd;
  const hn::Rebind<float, decltype(dd)> df;  // as many floats as doubles fit in a vector
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(dd));
  auto s0 = hn::Zero(dd), s1 = s0, s2 = s0, s3 = s0;
  const auto square = [=](auto sum, const float* p) HWY_ATTR {
    const auto v = hn::PromoteTo(dd, hn::LoadU(df, p));
    return hn::MulAdd(v, v, sum);
  };
  std::int64_t i = 0;
  for (; i + 4 * lanes <= n; i += 4 * lanes) {
    s0 = square(s0, x + i);
    s1 = square(s1, x + i + lanes);
    s2 = square(s2, x + i + 2 * lanes);
    s3 = square(s3, x + i + 3 * lanes);
  }
  double sum = hn::GetLane(hn::SumOfLanes(dd, hn::Add(hn::Add(s0, s1), hn::Add(s2, s3))));
  for (; i < n; ++i) sum += static_cast<double>(x[i]) * x[i];
  return static_cast<float>(sum);
}

}  // namespace HWY_NAMESPACE
}  // namespace hyperrun::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace hyperrun::kernels {
namespace {
HWY_EXPORT(Add);
HWY_EXPORT(Scale);
HWY_EXPORT(Fill);
HWY_EXPORT(ExpArray);
HWY_EXPORT(SumSquares);
HWY_EXPORT(Accumulate);
HWY_EXPORT(Convert);
}  // namespace

void add(std::int64_t n, ConstArray a, ConstArray b, Array out) { HWY_DYNAMIC_DISPATCH(Add)(n, a, b, out); }

void accumulate(std::int64_t n, ConstArray b, float* a) { HWY_DYNAMIC_DISPATCH(Accumulate)(n, b, a); }

void sum_rows(std::int64_t rows, std::int64_t width, ConstArray x, float* sum, bool accumulate) {
  if (!accumulate) fill(width, 0.0F, sum);
  for (std::int64_t row = 0; row < rows; ++row) kernels::accumulate(width, x + row * width, sum);
}

void scale(std::int64_t n, float factor, Array a) { HWY_DYNAMIC_DISPATCH(Scale)(n, factor, a); }

void copy(std::int64_t n, ConstArray from, Array to) {
  HR_CHECK(from.dtype() == to.dtype(), "a copy changes no format");
  if (n > 0) std::memcpy(to.data(), from.data(), static_cast<std::size_t>(n * size_of(to.dtype())));
}

void convert(std::int64_t n, ConstArray from, Array to) { HWY_DYNAMIC_DISPATCH(Convert)(n, from, to); }

void clear(std::int64_t n, Array a) {
  if (n > 0) std::memset(a.data(), 0, static_cast<std::size_t>(n * size_of(a.dtype())));
}

void fill(std::int64_t n, float value, float* a) { HWY_DYNAMIC_DISPATCH(Fill)(n, value, a); }

float sum_squares(std::int64_t n, const float* x) { return HWY_DYNAMIC_DISPATCH(SumSquares)(n, x); }

void exp(std::int64_t n, const float* x, float* y) { HWY_DYNAMIC_DISPATCH(ExpArray)(n, x, y); }

}  // namespace hyperrun::kernels
#endif  // HWY_ONCE

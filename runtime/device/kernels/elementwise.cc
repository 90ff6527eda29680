#include "runtime/device/kernels/elementwise.h"

#include <cstring>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "runtime/device/kernels/elementwise.cc"
#include <hwy/foreach_target.h>  // must come before highway.h
#include <hwy/highway.h>

#include "runtime/base/dtype.h"
#include "runtime/device/kernels/exp-inl.h"
#include "runtime/device/kernels/vector-inl.h"

HWY_BEFORE_NAMESPACE();
namespace hyperrun::kernels {
namespace HWY_NAMESPACE {

void Add(std::int64_t n, const float* a, const float* b, float* out) {
  ForEach(n, [=](auto d, std::int64_t i)
                 HWY_ATTR { hn::StoreU(hn::Add(hn::LoadU(d, a + i), hn::LoadU(d, b + i)), d, out + i); });
}

void Scale(std::int64_t n, float factor, float* a) {
  ForEach(n, [=](auto d, std::int64_t i)
                 HWY_ATTR { hn::StoreU(hn::Mul(hn::LoadU(d, a + i), hn::Set(d, factor)), d, a + i); });
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

void ToBf16(std::int64_t n, const float* from, std::uint16_t* to) {
  ForEach(n, [=](auto d, std::int64_t i) HWY_ATTR {
    const hn::RebindToUnsigned<decltype(d)> du;
    const hn::RebindToSigned<decltype(d)> di;
    const hn::Rebind<std::uint16_t, decltype(d)> d16;
    const auto v = hn::LoadU(d, from + i);
    const auto u = hn::BitCast(du, v);
    const auto high = hn::ShiftRight<16>(u);
    const auto even = hn::Add(hn::And(high, hn::Set(du, 1U)), hn::Set(du, 0x7fffU));
    const auto rounded = hn::ShiftRight<16>(hn::Add(u, even));
    const auto quiet = hn::Or(high, hn::Set(du, 0x40U));
    const auto is_nan = hn::RebindMask(du, hn::IsNaN(v));
    const auto bits = hn::IfThenElse(is_nan, quiet, rounded);
    hn::StoreU(hn::DemoteTo(d16, hn::BitCast(di, bits)), d16, to + i);
  });
}

void FromBf16(std::int64_t n, const std::uint16_t* from, float* to) {
  ForEach(n, [=](auto d, std::int64_t i) HWY_ATTR {
    const hn::RebindToUnsigned<decltype(d)> du;
    const hn::Rebind<std::uint16_t, decltype(d)> d16;
    const auto wide = hn::PromoteTo(du, hn::LoadU(d16, from + i));
    hn::StoreU(hn::BitCast(d, hn::ShiftLeft<16>(wide)), d, to + i);
  });
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
HWY_EXPORT(ToBf16);
HWY_EXPORT(FromBf16);
}  // namespace

void add(std::int64_t n, const float* a, const float* b, float* out) {
  HWY_DYNAMIC_DISPATCH(Add)(n, a, b, out);
}

void accumulate(std::int64_t n, const float* b, float* a) { HWY_DYNAMIC_DISPATCH(Add)(n, a, b, a); }

void scale(std::int64_t n, float factor, float* a) { HWY_DYNAMIC_DISPATCH(Scale)(n, factor, a); }

void copy(std::int64_t n, const float* from, float* to) {
  if (n > 0) std::memcpy(to, from, static_cast<std::size_t>(n) * sizeof(float));
}

void fill(std::int64_t n, float value, float* a) { HWY_DYNAMIC_DISPATCH(Fill)(n, value, a); }

float sum_squares(std::int64_t n, const float* x) { return HWY_DYNAMIC_DISPATCH(SumSquares)(n, x); }

void exp(std::int64_t n, const float* x, float* y) { HWY_DYNAMIC_DISPATCH(ExpArray)(n, x, y); }

void f32_to_bf16(std::int64_t n, const float* from, std::uint16_t* to) {
  HWY_DYNAMIC_DISPATCH(ToBf16)(n, from, to);
}

void bf16_to_f32(std::int64_t n, const std::uint16_t* from, float* to) {
  HWY_DYNAMIC_DISPATCH(FromBf16)(n, from, to);
}

}  // namespace hyperrun::kernels
#endif  // HWY_ONCE

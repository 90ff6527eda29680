// The exponential function of a vector of floats, and functions made of it. See vector-inl.h for the guard.
//
// x = n ln 2 + r with |r| <= ln 2 / 2 (ln 2 in two parts, the first of 15 bits, so that n times it is exact).
// exp r = 1 + r + r^2 p(r) with p of degree 4, which has the least maximal relative error on that interval
// (3.1e-9, by Remez' exchange). 2^n is made from the exponent's bits. The test measures the error over the
// whole range.
#if defined(HYPERRUN_KERNELS_EXP_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HYPERRUN_KERNELS_EXP_INL_H_
#undef HYPERRUN_KERNELS_EXP_INL_H_
#else
#define HYPERRUN_KERNELS_EXP_INL_H_
#endif

#include <hwy/highway.h>

#include <limits>

HWY_BEFORE_NAMESPACE();
namespace hyperrun::kernels {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

inline constexpr float kExpLowest = -87.3365447F;  // ln of the smallest normal float
inline constexpr float kExpHighest = 88.7228317F;  // ln of the largest float

// The polynomial of r = x - n ln 2, without the factor 2^n.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V ExpFraction(D d, V x, V n) {
  auto r = hn::NegMulAdd(n, hn::Set(d, 0x1.62e4p-1F), x);
  r = hn::NegMulAdd(n, hn::Set(d, 1.42860682e-6F), r);
  auto p = hn::Set(d, 1.381459865e-3F);
  p = hn::MulAdd(p, r, hn::Set(d, 8.368716880e-3F));
  p = hn::MulAdd(p, r, hn::Set(d, 4.166838805e-2F));
  p = hn::MulAdd(p, r, hn::Set(d, 1.666652063e-1F));
  p = hn::MulAdd(p, r, hn::Set(d, 4.999999345e-1F));
  return hn::Add(hn::MulAdd(hn::Mul(p, r), r, r), hn::Set(d, 1.0F));
}

// The factor 2^n for integers n in [-126, 127].
template <class D, class VI>
HWY_INLINE hn::Vec<D> PowerOfTwo(D d, VI n) {
  const hn::RebindToSigned<D> di;
  return hn::BitCast(d, hn::ShiftLeft<23>(hn::Add(n, hn::Set(di, 127))));
}

// exp(x) for x <= 0 (a softmax subtracts the maximum): 0 below kExpLowest, NaN stays NaN.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V ExpOfNegative(D d, V x) {
  const auto ni = hn::NearestInt(hn::Mul(x, hn::Set(d, 1.44269504F)));
  const auto y = ExpFraction(d, x, hn::ConvertTo(d, ni));
  return hn::IfThenZeroElse(hn::Lt(x, hn::Set(d, kExpLowest)), hn::Mul(y, PowerOfTwo(d, ni)));
}

// exp(x) for any x. 2^128 is no float, so the factor is applied in two halves.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V Exp(D d, V x) {
  const auto ni = hn::NearestInt(hn::Mul(x, hn::Set(d, 1.44269504F)));
  const auto half = hn::ShiftRight<1>(ni);
  auto y = ExpFraction(d, x, hn::ConvertTo(d, ni));
  y = hn::Mul(hn::Mul(y, PowerOfTwo(d, half)), PowerOfTwo(d, hn::Sub(ni, half)));
  y = hn::IfThenZeroElse(hn::Lt(x, hn::Set(d, kExpLowest)), y);
  return hn::IfThenElse(hn::Gt(x, hn::Set(d, kExpHighest)),
                        hn::Set(d, std::numeric_limits<float>::infinity()), y);
}

template <class D, class V = hn::Vec<D>>
HWY_INLINE V Sigmoid(D d, V x) {
  const auto one = hn::Set(d, 1.0F);
  return hn::Div(one, hn::Add(one, Exp(d, hn::Neg(x))));
}

}  // namespace HWY_NAMESPACE
}  // namespace hyperrun::kernels
HWY_AFTER_NAMESPACE();

#endif  // toggled guard

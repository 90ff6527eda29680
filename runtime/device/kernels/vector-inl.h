// Loops over arrays in vectors of the chosen target, for the kernels' .cc files. foreach_target compiles this
// file once for each target, hence the guard that toggles instead of #pragma once.
//
// A loop body is a generic lambda body(d, i) that handles Lanes(d) elements from i on. The rest of the array,
// shorter than a vector, is handled by the same body with vectors of one lane: same arithmetic, same bits.
#if defined(HYPERRUN_KERNELS_VECTOR_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HYPERRUN_KERNELS_VECTOR_INL_H_
#undef HYPERRUN_KERNELS_VECTOR_INL_H_
#else
#define HYPERRUN_KERNELS_VECTOR_INL_H_
#endif

#include <hwy/highway.h>

#include <cstddef>
#include <cstdint>

#include "runtime/device/kernels/array.h"

HWY_BEFORE_NAMESPACE();
namespace hyperrun::kernels {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using F32 = hn::ScalableTag<float>;
using OneF32 = hn::CappedTag<float, 1>;

// Loads and stores convert between the array's format and vectors of floats.
template <class D>
HWY_INLINE hn::Vec<D> LoadFloats(D d, const float* from) {
  return hn::LoadU(d, from);
}
template <class D>
HWY_INLINE hn::Vec<D> LoadFloats(D d, const Bf16* from) {
  const hn::RebindToUnsigned<D> du;
  const hn::Rebind<std::uint16_t, D> d16;
  const auto half = hn::LoadU(d16, reinterpret_cast<const std::uint16_t*>(from));
  return hn::BitCast(d, hn::ShiftLeft<16>(hn::PromoteTo(du, half)));
}

template <class D>
HWY_INLINE void StoreFloats(hn::Vec<D> v, D d, float* to) {
  hn::StoreU(v, d, to);
}
// Rounds to nearest even; NaN stays NaN. Integer arithmetic gives the same bits on every target, those of
// f32_to_bf16.
template <class D>
HWY_INLINE void StoreFloats(hn::Vec<D> v, D, Bf16* to) {
  const hn::RebindToUnsigned<D> du;
  const hn::RebindToSigned<D> di;
  const hn::Rebind<std::uint16_t, D> d16;
  const auto u = hn::BitCast(du, v);
  const auto high = hn::ShiftRight<16>(u);
  const auto even = hn::Add(hn::And(high, hn::Set(du, 1U)), hn::Set(du, 0x7fffU));
  const auto nearest = hn::ShiftRight<16>(hn::Add(u, even));
  const auto quiet = hn::Or(high, hn::Set(du, 0x40U));
  const auto bits = hn::IfThenElse(hn::RebindMask(du, hn::IsNaN(v)), quiet, nearest);
  hn::StoreU(hn::DemoteTo(d16, hn::BitCast(di, bits)), d16, reinterpret_cast<std::uint16_t*>(to));
}

template <class Body>
HWY_INLINE void ForEach(std::int64_t n, const Body& body) {
  const F32 d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  std::int64_t i = 0;
  for (; i + 2 * lanes <= n; i += 2 * lanes) {
    body(d, i);
    body(d, i + lanes);
  }
  for (; i + lanes <= n; i += lanes) body(d, i);
  for (; i < n; ++i) body(OneF32(), i);
}

// Sum of the values of body(d, i). Four accumulators hide the latency of the addition; n and the width of a
// vector fix the order of additions.
template <class Body>
HWY_INLINE float SumOver(std::int64_t n, const Body& body) {
  const F32 d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  auto s0 = hn::Zero(d), s1 = s0, s2 = s0, s3 = s0;
  std::int64_t i = 0;
  for (; i + 4 * lanes <= n; i += 4 * lanes) {
    s0 = hn::Add(s0, body(d, i));
    s1 = hn::Add(s1, body(d, i + lanes));
    s2 = hn::Add(s2, body(d, i + 2 * lanes));
    s3 = hn::Add(s3, body(d, i + 3 * lanes));
  }
  for (; i + lanes <= n; i += lanes) s0 = hn::Add(s0, body(d, i));
  float rest = 0;  // summed on its own: each addition to the large sum would cost a rounding of its size
  for (; i < n; ++i) rest += hn::GetLane(body(OneF32(), i));
  return hn::GetLane(hn::SumOfLanes(d, hn::Add(hn::Add(s0, s1), hn::Add(s2, s3)))) + rest;
}

// Largest element of x[n], n > 0.
template <Number T>
HWY_INLINE float MaxOf(std::int64_t n, const T* HWY_RESTRICT x) {
  const F32 d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  auto m0 = hn::Set(d, to_float(x[0])), m1 = m0;
  std::int64_t i = 0;
  for (; i + 2 * lanes <= n; i += 2 * lanes) {
    m0 = hn::Max(m0, LoadFloats(d, x + i));
    m1 = hn::Max(m1, LoadFloats(d, x + i + lanes));
  }
  for (; i + lanes <= n; i += lanes) m0 = hn::Max(m0, LoadFloats(d, x + i));
  float max = hn::GetLane(hn::MaxOfLanes(d, hn::Max(m0, m1)));
  for (; i < n; ++i) max = to_float(x[i]) > max ? to_float(x[i]) : max;
  return max;
}

}  // namespace HWY_NAMESPACE
}  // namespace hyperrun::kernels
HWY_AFTER_NAMESPACE();

#endif  // toggled guard

#include "collectives/reduce.h"

#include <cstdint>

#include "runtime/base/error.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "collectives/reduce.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace hyperrun {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

struct F32 {
  using Element = float;
  using D = hn::ScalableTag<float>;
  static hn::Vec<D> load(D d, const float* p) { return hn::LoadU(d, p); }
  static void store(D d, hn::Vec<D> v, float* p) { hn::StoreU(v, d, p); }
  static float load1(const float* p) { return *p; }
  static void store1(float v, float* p) { *p = v; }
};

struct BF16 {
  using Element = std::uint16_t;
  using D = hn::ScalableTag<float>;
  using DHalf = hn::Rebind<std::uint16_t, D>;
  static hn::Vec<D> load(D d, const std::uint16_t* p) {
    const hn::Rebind<std::uint32_t, D> du;
    return hn::BitCast(d, hn::ShiftLeft<16>(hn::PromoteTo(du, hn::LoadU(DHalf(), p))));
  }
  // Rounds to nearest even as f32_to_bf16 does and keeps NaN quiet. Integer arithmetic makes every target
  // agree.
  static void store(D d, hn::Vec<D> v, std::uint16_t* p) {
    const hn::Rebind<std::uint32_t, D> du;
    const auto u = hn::BitCast(du, v);
    const auto odd = hn::And(hn::ShiftRight<16>(u), hn::Set(du, 1));
    const auto rounded = hn::ShiftRight<16>(hn::Add(u, hn::Add(odd, hn::Set(du, 0x7fff))));
    const auto quiet = hn::Or(hn::ShiftRight<16>(u), hn::Set(du, 0x40));
    const auto nan = hn::RebindMask(du, hn::IsNaN(v));
    hn::StoreU(hn::DemoteTo(DHalf(),
                            hn::BitCast(hn::Rebind<std::int32_t, D>(), hn::IfThenElse(nan, quiet, rounded))),
               DHalf(), p);
    static_cast<void>(d);
  }
  static float load1(const std::uint16_t* p) { return bf16_to_f32(*p); }
  static void store1(float v, std::uint16_t* p) { *p = f32_to_bf16(v); }
};

struct Sum {
  template <class V>
  static V apply(V a, V b) {
    return hn::Add(a, b);
  }
  static float apply1(float a, float b) { return a + b; }
};

struct Max {
  template <class V>
  static V apply(V a, V b) {
    return hn::IfThenElse(hn::Gt(a, b), a, b);
  }
  static float apply1(float a, float b) { return a > b ? a : b; }
};

// P is the number of sources if the compiler knows it, else 0. Two vectors at a time hide latency.
template <class T, class Op, int P>
void run(const std::byte* const* sources, int count, std::byte* const* targets, int target_count,
         std::int64_t n) {
  using Element = typename T::Element;
  const typename T::D d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const int p = P > 0 ? P : count;
  auto source = [&](int k) { return reinterpret_cast<const Element*>(sources[k]); };
  auto target = [&](int k) { return reinterpret_cast<Element*>(targets[k]); };
  std::int64_t i = 0;
  for (; i + 2 * lanes <= n; i += 2 * lanes) {
    auto a = T::load(d, source(0) + i);
    auto b = T::load(d, source(0) + i + lanes);
    for (int k = 1; k < p; ++k) {
      a = Op::apply(a, T::load(d, source(k) + i));
      b = Op::apply(b, T::load(d, source(k) + i + lanes));
    }
    for (int k = 0; k < target_count; ++k) {
      T::store(d, a, target(k) + i);
      T::store(d, b, target(k) + i + lanes);
    }
  }
  for (; i < n; ++i) {
    float a = T::load1(source(0) + i);
    for (int k = 1; k < p; ++k) a = Op::apply1(a, T::load1(source(k) + i));
    for (int k = 0; k < target_count; ++k) T::store1(a, target(k) + i);
  }
}

template <class T, class Op>
void by_count(const std::byte* const* s, int count, std::byte* const* t, int targets, std::int64_t n) {
  switch (count) {
    case 2: return run<T, Op, 2>(s, count, t, targets, n);
    case 4: return run<T, Op, 4>(s, count, t, targets, n);
    case 8: return run<T, Op, 8>(s, count, t, targets, n);
    default: return run<T, Op, 0>(s, count, t, targets, n);
  }
}

void reduce_f32_sum(const std::byte* const* s, int count, std::byte* const* t, int targets, std::int64_t n) {
  by_count<F32, Sum>(s, count, t, targets, n);
}
void reduce_f32_max(const std::byte* const* s, int count, std::byte* const* t, int targets, std::int64_t n) {
  by_count<F32, Max>(s, count, t, targets, n);
}
void reduce_bf16_sum(const std::byte* const* s, int count, std::byte* const* t, int targets, std::int64_t n) {
  by_count<BF16, Sum>(s, count, t, targets, n);
}
void reduce_bf16_max(const std::byte* const* s, int count, std::byte* const* t, int targets, std::int64_t n) {
  by_count<BF16, Max>(s, count, t, targets, n);
}

}  // namespace HWY_NAMESPACE
}  // namespace hyperrun
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace hyperrun {

HWY_EXPORT(reduce_f32_sum);
HWY_EXPORT(reduce_f32_max);
HWY_EXPORT(reduce_bf16_sum);
HWY_EXPORT(reduce_bf16_max);

void reduce(DType dtype, ReduceOp op, std::span<const std::byte* const> sources,
            std::span<std::byte* const> targets, std::int64_t n) {
  HR_CHECK(!sources.empty() && dtype != DType::kI32, "int32 moves but is never reduced");
  const std::byte* const* s = sources.data();
  std::byte* const* t = targets.data();
  const int count = static_cast<int>(sources.size()), to = static_cast<int>(targets.size());
  const bool sum = op == ReduceOp::kSum;
  if (dtype == DType::kF32) {
    return sum ? HWY_DYNAMIC_DISPATCH(reduce_f32_sum)(s, count, t, to, n)
               : HWY_DYNAMIC_DISPATCH(reduce_f32_max)(s, count, t, to, n);
  }
  return sum ? HWY_DYNAMIC_DISPATCH(reduce_bf16_sum)(s, count, t, to, n)
             : HWY_DYNAMIC_DISPATCH(reduce_bf16_max)(s, count, t, to, n);
}

}  // namespace hyperrun
#endif

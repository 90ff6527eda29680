#include "runtime/device/kernels/rope.h"

#include <algorithm>
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

template <class D>
HWY_INLINE void LoadPairs(D d, const float* x, hn::Vec<D>& a, hn::Vec<D>& b) {
  hn::LoadInterleaved2(d, x, a, b);
}
HWY_INLINE void LoadPairs(OneF32 d, const Bf16* x, hn::Vec<OneF32>& a, hn::Vec<OneF32>& b) {
  a = LoadFloats(d, x), b = LoadFloats(d, x + 1);
}
template <class D>
HWY_INLINE void StorePairs(hn::Vec<D> a, hn::Vec<D> b, D d, float* y) {
  hn::StoreInterleaved2(a, b, d, y);
}
HWY_INLINE void StorePairs(hn::Vec<OneF32> a, hn::Vec<OneF32> b, OneF32 d, Bf16* y) {
  StoreFloats(a, d, y), StoreFloats(b, d, y + 1);
}

// Rotates pairs of bfloat16 one at a time: no load separates them.
template <bool kInverse, Number T>
HWY_INLINE void RotateNeighbours(std::int64_t half, const T* x, const float* HWY_RESTRICT cos,
                                 const float* HWY_RESTRICT sin, T* y) {
  const auto turn = [=](auto d, std::int64_t i) HWY_ATTR {
    hn::Vec<decltype(d)> a, b;
    LoadPairs(d, x + 2 * i, a, b);
    const auto c = hn::LoadU(d, cos + i);
    auto s = hn::LoadU(d, sin + i);
    if constexpr (kInverse) s = hn::Neg(s);
    StorePairs(hn::NegMulAdd(b, s, hn::Mul(a, c)), hn::MulAdd(a, s, hn::Mul(b, c)), d, y + 2 * i);
  };
  if constexpr (std::same_as<T, float>) {
    ForEach(half, turn);
  } else {
    for (std::int64_t i = 0; i < half; ++i) turn(OneF32(), i);
  }
}

template <bool kInverse, Number T>
void RotateRows(const RopePlan& p, const T* x, const float* table, T* y) {
  const std::int64_t half = p.turned / 2, still = p.head_dim - p.turned;
  for (std::int64_t row = 0; row < p.rows; ++row) {
    const float* cos = table + row % p.seq * p.turned;
    for (std::int64_t h = 0; h < p.heads; ++h) {
      const T* from = x + row * p.ldx + h * p.head_dim;
      T* to = y + row * p.ldy + h * p.head_dim;
      const std::int64_t rest = p.at_front ? p.turned : 0, first = p.at_front ? 0 : still;
      if (from != to) std::copy_n(from + rest, still, to + rest);
      if (p.pairs == Pairs::kNeighbours)
        RotateNeighbours<kInverse>(half, from + first, cos, cos + half, to + first);
      else
        RotateHead<kInverse>(half, from + first, cos, cos + half, to + first);
    }
  }
}

void Rope(Rotate direction, const RopePlan& plan, ConstArray x, const float* table, Array y) {
  typed(y.dtype(), [&]<class T>(T) {
    if (direction == Rotate::kInverse) {
      RotateRows<true>(plan, x.as<T>(), table, y.as<T>());
    } else {
      RotateRows<false>(plan, x.as<T>(), table, y.as<T>());
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

void rope_table(std::int64_t start, std::int64_t positions, std::span<const double> frequencies, float* table,
                double magnitude) {
  const std::int64_t half = std::ssize(frequencies), head_dim = 2 * half;
  for (std::int64_t i = 0; i < half; ++i) {
    for (std::int64_t p = 0; p < positions; ++p) {
      const double angle = static_cast<double>(start + p) * frequencies[static_cast<std::size_t>(i)];
      table[p * head_dim + i] = static_cast<float>(magnitude * std::cos(angle));
      table[p * head_dim + half + i] = static_cast<float>(magnitude * std::sin(angle));
    }
  }
}

void rope(Rotate direction, std::int64_t rows, std::int64_t seq, std::int64_t heads, std::int64_t head_dim,
          ConstArray x, std::int64_t ldx, const float* table, Array y, std::int64_t ldy, std::int64_t turned,
          Pairs pairs, bool at_front) {
  const RopePlan plan{rows, seq, heads, head_dim, turned > 0 ? turned : head_dim, ldx, ldy, pairs, at_front};
  HWY_DYNAMIC_DISPATCH(Rope)(direction, plan, x, table, y);
}

}  // namespace hyperrun::kernels
#endif  // HWY_ONCE

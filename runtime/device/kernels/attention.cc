#include "runtime/device/kernels/attention.h"

#include <algorithm>
#include <cmath>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "runtime/device/kernels/attention.cc"
#include <hwy/foreach_target.h>  // must come before highway.h
#include <hwy/highway.h>

#include "runtime/device/kernels/attention-inl.h"
#include "runtime/device/kernels/attention_plan.h"

HWY_BEFORE_NAMESPACE();
namespace hyperrun::kernels {
namespace HWY_NAMESPACE {

struct RowSum {
  float inverse, lse;
  float carried;  // weight of the results for earlier keys, before `inverse`
};

// Turns row[0, seen) into exp(scale * row - max), with the largest score and, onward, with `before`, the lse
// of earlier keys. The row is padded: it may be written up to a whole vector.
template <bool kOnward>
HWY_INLINE RowSum SoftmaxRow(std::int64_t seen, float scale, float before, float* HWY_RESTRICT row) {
  if (kOnward && seen == 0) return {1, before, 1};
  const F32 d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const float own = scale * MaxOf(seen, row), max = kOnward ? std::max(own, before) : own;
  const auto shift = hn::Set(d, -max), factor = hn::Set(d, scale);
  auto s0 = hn::Zero(d), s1 = s0;
  std::int64_t i = 0;
  for (; i + 2 * lanes <= seen; i += 2 * lanes) {
    const auto e0 = ExpOfNegative(d, hn::MulAdd(hn::LoadU(d, row + i), factor, shift));
    const auto e1 = ExpOfNegative(d, hn::MulAdd(hn::LoadU(d, row + i + lanes), factor, shift));
    hn::StoreU(e0, d, row + i);
    hn::StoreU(e1, d, row + i + lanes);
    s0 = hn::Add(s0, e0);
    s1 = hn::Add(s1, e1);
  }
  for (; i < seen; i += lanes) {
    const auto valid = hn::FirstN(d, static_cast<std::size_t>(seen - i));
    const auto e = ExpOfNegative(d, hn::MulAdd(hn::LoadU(d, row + i), factor, shift));
    const auto kept = hn::IfThenElseZero(valid, e);
    hn::StoreU(kept, d, row + i);
    s0 = hn::Add(s0, kept);
  }
  const float carried = kOnward ? std::exp(before - max) : 0;
  const float sum = hn::GetLane(hn::SumOfLanes(d, hn::Add(s0, s1))) + carried;
  return {1.0F / sum, max + std::log(sum), carried};
}

HWY_INLINE void ScaleLine(std::int64_t n, float factor, float* line) {
  ForEach(n, [=](auto d, std::int64_t c)
                 HWY_ATTR { hn::StoreU(hn::Mul(hn::LoadU(d, line + c), hn::Set(d, factor)), d, line + c); });
}

// Computes o and lse of one block of query rows of one head: rows [first, first + rows).
template <bool kOnward, Number T, Number O>
HWY_INLINE void ForwardBlock(const AttentionPlan& plan, const AttentionScratch& s, std::int64_t first,
                             std::int64_t rows, const T* q, O* o, float* lse) {
  constexpr bool kInPlace = std::same_as<O, float>;
  static_assert(kInPlace || !kOnward);
  PackRows(rows, plan.head_dim, q, plan.q_stride, s.queries);
  ScoreBlock(plan, first, rows, plan.head_dim, s.queries, s.keys, s.scores);
  for (std::int64_t i = 0; i < rows; i += kStrip) {
    const std::int64_t height = std::min(kStrip, rows - i);
    const StripKeys keys(plan, first + i, height);
    if (kOnward && keys.end <= keys.begin) continue;
    const std::int64_t width = plan.value_dim, stride = kInPlace ? plan.o_stride : width;
    float* out = s.out;
    if constexpr (kInPlace) out = o + i * plan.o_stride;
    float inverse[kStrip];
    for (std::int64_t r = 0; r < height; ++r) {
      float* row = s.scores + (i + r) * plan.score_stride;
      const std::int64_t from = plan.first(first + i + r), seen = plan.seen(first + i + r);
      const RowSum sum = SoftmaxRow<kOnward>(seen - from, plan.scale, kOnward ? lse[i + r] : 0, row + from);
      ClearUnseen(keys, from, seen, row);
      inverse[r] = sum.inverse;
      lse[i + r] = sum.lse;
      if (kOnward) ScaleLine(width, sum.carried, out + r * stride);
    }
    Product<kOnward>(height, width, keys.end - keys.begin,
                     Left{s.scores + i * plan.score_stride + keys.begin, plan.score_stride, 1},
                     s.values + keys.begin * width, width, out, stride);
    for (std::int64_t r = 0; r < height; ++r) ScaleLine(width, inverse[r], out + r * stride);
    if constexpr (!kInPlace) UnpackRows(height, width, out, o + i * plan.o_stride, plan.o_stride);
  }
}

template <bool kOnward, Number T, Number O>
void Forward(const AttentionPlan& plan, const T* q, const T* k, const T* v, O* o, float* lse,
             const AttentionScratch& s) {
  for (std::int64_t bg = 0; bg < plan.batch * plan.kv_heads; ++bg) {
    const std::int64_t b = bg / plan.kv_heads, g = bg % plan.kv_heads;
    const std::int64_t k_at = b * plan.kv_rows * plan.kv_stride + g * plan.head_dim;
    const std::int64_t v_at = b * plan.kv_rows * plan.v_stride + g * plan.value_dim;
    PackPanels(plan.keys, plan.head_dim, k + k_at, plan.kv_stride, s.keys);
    PackRows(plan.keys, plan.value_dim, v + v_at, plan.v_stride, s.values);
    for (std::int64_t h = g * plan.group; h < (g + 1) * plan.group; ++h) {
      for (std::int64_t first = 0; first < plan.seq; first += kBlock) {
        const std::int64_t row = b * plan.q_rows + first;
        ForwardBlock<kOnward>(
            plan, s, first, std::min(kBlock, plan.seq - first), q + row * plan.q_stride + h * plan.head_dim,
            o + row * plan.o_stride + h * plan.value_dim, lse + (b * plan.heads + h) * plan.q_rows + first);
      }
    }
  }
}

void Attention(const AttentionPlan& plan, ConstArray q, ConstArray k, ConstArray v, Array o, float* lse,
               const AttentionScratch& s) {
  typed(q.dtype(), [&]<class T>(T) {
    if (plan.onward)
      Forward<true>(plan, q.as<T>(), k.as<T>(), v.as<T>(), o.as<float>(), lse, s);
    else if (plan.rounded)
      Forward<false>(plan, q.as<T>(), k.as<T>(), v.as<T>(), o.as<T>(), lse, s);
    else
      Forward<false>(plan, q.as<T>(), k.as<T>(), v.as<T>(), o.as<float>(), lse, s);
  });
}

}  // namespace HWY_NAMESPACE
}  // namespace hyperrun::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace hyperrun::kernels {
namespace {
HWY_EXPORT(Attention);
}  // namespace

std::int64_t attention_scratch_bytes(const AttentionShape& shape) {
  ScratchCursor cursor(nullptr);
  AttentionScratch(AttentionPlan(shape), cursor);
  return cursor.bytes();
}

void attention(const AttentionShape& shape, ConstArray q, ConstArray k, ConstArray v, Array o, float* lse,
               void* scratch) {
  const AttentionPlan plan(shape);
  plan.check();
  HR_CHECK(plan.rounded == (o.dtype() != DType::kF32), "scratch for a result that is rounded");
  ScratchCursor cursor(scratch);
  HWY_DYNAMIC_DISPATCH(Attention)(plan, q, k, v, o, lse, AttentionScratch(plan, cursor));
}

}  // namespace hyperrun::kernels
#endif  // HWY_ONCE

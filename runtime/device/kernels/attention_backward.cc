#include <algorithm>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "runtime/device/kernels/attention_backward.cc"
#include <hwy/foreach_target.h>  // must come before highway.h
#include <hwy/highway.h>

#include "runtime/device/kernels/attention-inl.h"
#include "runtime/device/kernels/attention.h"
#include "runtime/device/kernels/attention_plan.h"

HWY_BEFORE_NAMESPACE();
namespace hyperrun::kernels {
namespace HWY_NAMESPACE {

template <Number T>
HWY_INLINE float Dot(std::int64_t n, const float* a, const T* b) {
  return SumOver(n, [=](auto d, std::int64_t i)
                        HWY_ATTR { return hn::Mul(LoadFloats(d, a + i), LoadFloats(d, b + i)); });
}

// Turns scores into probabilities p, and dp into the gradient of the unscaled scores, p (dp - delta) scale.
// Both rows are padded and written up to a whole vector.
HWY_INLINE void ScoreGradientRow(std::int64_t seen, float scale, float lse, float delta,
                                 float* HWY_RESTRICT p, float* HWY_RESTRICT dp) {
  const F32 d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const auto factor = hn::Set(d, scale), shift = hn::Set(d, -lse), mean = hn::Set(d, delta);
  for (std::int64_t i = 0; i < seen; i += lanes) {
    const auto valid = hn::FirstN(d, static_cast<std::size_t>(seen - i));
    const auto e = ExpOfNegative(d, hn::MulAdd(hn::LoadU(d, p + i), factor, shift));
    const auto pi = hn::IfThenElseZero(valid, e);
    const auto slope = hn::Mul(hn::Sub(hn::LoadU(d, dp + i), mean), factor);
    hn::StoreU(pi, d, p + i);
    hn::StoreU(hn::IfThenElseZero(valid, hn::Mul(pi, slope)), d, dp + i);
  }
}

// Pointers of one query head's block of rows, and of its kv head, whose gradients have strides of their own.
// T is the format of inputs, Q that of dq.
template <Number T, Number Q>
struct BackwardBlock {
  const T *q, *o, *d_o;
  const float* lse;
  Q* dq;
  float *dk, *dv;
  std::int64_t k_stride, v_stride, first, rows;
};

// Computes scores and d_scores of the block, then dq.
template <Number T, Number Q>
HWY_INLINE void QueryGradient(const AttentionPlan& plan, const AttentionBackwardScratch& s,
                              const BackwardBlock<T, Q>& block) {
  constexpr bool kInPlace = std::same_as<Q, float>;
  const std::int64_t n = plan.head_dim, of_values = plan.value_dim, stride = kInPlace ? plan.q_stride : n;
  ScoreBlock(plan, block.first, block.rows, n, s.queries, s.keys, s.scores);
  ScoreBlock(plan, block.first, block.rows, of_values, s.d_out, s.values, s.d_scores);
  for (std::int64_t i = 0; i < block.rows; i += kStrip) {
    const std::int64_t height = std::min(kStrip, block.rows - i);
    const StripKeys keys(plan, block.first + i, height);
    for (std::int64_t r = i; r < i + height; ++r) {
      const std::int64_t from = plan.first(block.first + r), seen = plan.seen(block.first + r);
      float* p = s.scores + r * plan.score_stride;
      float* dp = s.d_scores + r * plan.score_stride;
      const float delta = Dot(of_values, s.d_out + r * of_values, block.o + r * plan.o_stride);
      ScoreGradientRow(seen - from, plan.scale, block.lse[r], delta, p + from, dp + from);
      ClearUnseen(keys, from, seen, p);
      ClearUnseen(keys, from, seen, dp);
    }
    if (plan.onward && keys.end <= keys.begin) continue;
    const std::int64_t depth = keys.end - keys.begin;
    const Left left{s.d_scores + i * plan.score_stride + keys.begin, plan.score_stride, 1};
    const float* const key_rows = s.key_rows + keys.begin * n;
    float* dq = s.dq;
    if constexpr (kInPlace) dq = block.dq + i * plan.q_stride;
    if (plan.onward)
      Product<true>(height, n, depth, left, key_rows, n, dq, stride);
    else
      Product<false>(height, n, depth, left, key_rows, n, dq, stride);
    if constexpr (!kInPlace) UnpackRows(height, n, dq, block.dq + i * plan.q_stride, plan.q_stride);
  }
}

// Computes dk += d_scores^T q and dv += scores^T d_o. A strip of keys meets the rows from the first to the
// last that see any of it.
template <Number T, Number Q>
HWY_INLINE void KeyValueGradient(const AttentionPlan& plan, const AttentionBackwardScratch& s,
                                 const BackwardBlock<T, Q>& block) {
  const std::int64_t n = plan.head_dim, of_values = plan.value_dim;
  const StripKeys keys(plan, block.first, block.rows);
  std::int64_t from = 0, to = 0;
  for (std::int64_t key = keys.begin; key < keys.end; key += kStrip) {
    const std::int64_t height = std::min(kStrip, keys.end - key);
    while (from < block.rows && plan.seen(block.first + from) <= key) ++from;
    while (to < block.rows && plan.first(block.first + to) < key + height) ++to;
    if (to <= from) continue;
    const std::int64_t at = from * plan.score_stride + key, rows = to - from;
    Product<true>(height, n, rows, Left{s.d_scores + at, 1, plan.score_stride}, s.queries + from * n, n,
                  block.dk + key * block.k_stride, block.k_stride);
    Product<true>(height, of_values, rows, Left{s.scores + at, 1, plan.score_stride},
                  s.d_out + from * of_values, of_values, block.dv + key * block.v_stride, block.v_stride);
  }
}

// `block` has the gradients of the kv head.
template <Number T, Number Q>
void HeadBackward(const AttentionPlan& plan, const AttentionBackwardScratch& s, const BackwardTensors& t,
                  std::int64_t b, std::int64_t h, BackwardBlock<T, Q> block) {
  for (std::int64_t first = 0; first < plan.seq; first += kBlock) {
    const std::int64_t row = b * plan.q_rows + first;
    const std::int64_t q_at = row * plan.q_stride + h * plan.head_dim;
    const std::int64_t o_at = row * plan.o_stride + h * plan.value_dim;
    block.q = t.q.as<T>() + q_at;
    block.o = t.o.as<T>() + o_at;
    block.d_o = t.d_o.as<T>() + o_at;
    block.lse = t.lse + (b * plan.heads + h) * plan.q_rows + first;
    block.dq = t.dq.as<Q>() + q_at;
    block.first = first;
    block.rows = std::min(kBlock, plan.seq - first);
    PackRows(block.rows, plan.head_dim, block.q, plan.q_stride, s.queries);
    PackRows(block.rows, plan.value_dim, block.d_o, plan.o_stride, s.d_out);
    QueryGradient(plan, s, block);
    KeyValueGradient(plan, s, block);
  }
}

template <Number T, Number Q>
void BackwardOf(const AttentionPlan& plan, const BackwardTensors& t, const AttentionBackwardScratch& s) {
  constexpr bool kInPlace = std::same_as<T, float>;
  const std::int64_t n = plan.head_dim, of_values = plan.value_dim;
  BackwardBlock<T, Q> block{};
  block.k_stride = kInPlace ? plan.kv_stride : n;
  block.v_stride = kInPlace ? plan.v_stride : of_values;
  for (std::int64_t bg = 0; bg < plan.batch * plan.kv_heads; ++bg) {
    const std::int64_t b = bg / plan.kv_heads, g = bg % plan.kv_heads;
    const std::int64_t k_at = b * plan.kv_rows * plan.kv_stride + g * n;
    const std::int64_t v_at = b * plan.kv_rows * plan.v_stride + g * of_values;
    PackPanels(plan.keys, n, t.k.as<T>() + k_at, plan.kv_stride, s.keys);
    PackPanels(plan.keys, of_values, t.v.as<T>() + v_at, plan.v_stride, s.values);
    PackRows(plan.keys, n, t.k.as<T>() + k_at, plan.kv_stride, s.key_rows);
    T* dk = t.dk.as<T>() + k_at;
    T* dv = t.dv.as<T>() + v_at;
    block.dk = s.dk, block.dv = s.dv;
    if constexpr (kInPlace) block.dk = dk, block.dv = dv;
    for (std::int64_t i = 0; i < plan.keys; ++i) {
      std::fill_n(block.dk + i * block.k_stride, n, 0.0F);
      std::fill_n(block.dv + i * block.v_stride, of_values, 0.0F);
    }
    for (std::int64_t h = g * plan.group; h < (g + 1) * plan.group; ++h)
      HeadBackward(plan, s, t, b, h, block);
    if constexpr (!kInPlace) {
      UnpackRows(plan.keys, n, s.dk, dk, plan.kv_stride);
      UnpackRows(plan.keys, of_values, s.dv, dv, plan.v_stride);
    }
  }
}

void AttentionBackward(const AttentionPlan& plan, const BackwardTensors& t,
                       const AttentionBackwardScratch& s) {
  typed(t.q.dtype(),
        [&]<class T>(T) { typed(t.dq.dtype(), [&]<class Q>(Q) { BackwardOf<T, Q>(plan, t, s); }); });
}

}  // namespace HWY_NAMESPACE
}  // namespace hyperrun::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace hyperrun::kernels {
namespace {
HWY_EXPORT(AttentionBackward);
}  // namespace

std::int64_t attention_backward_scratch_bytes(const AttentionShape& shape) {
  ScratchCursor cursor(nullptr);
  AttentionBackwardScratch(AttentionPlan(shape), cursor);
  return cursor.bytes();
}

void attention_backward(const AttentionShape& shape, ConstArray q, ConstArray k, ConstArray v, ConstArray o,
                        const float* lse, ConstArray d_o, Array dq, Array dk, Array dv, void* scratch) {
  const AttentionPlan plan(shape);
  plan.check();
  HR_CHECK(plan.rounded == (dk.dtype() != DType::kF32), "scratch for results that are rounded");
  HR_CHECK(dq.dtype() == DType::kF32 || (plan.rounded && !plan.onward), "what is added up is float32");
  ScratchCursor cursor(scratch);
  HWY_DYNAMIC_DISPATCH(AttentionBackward)
  (plan, {q, k, v, o, lse, d_o, dq, dk, dv}, AttentionBackwardScratch(plan, cursor));
}

}  // namespace hyperrun::kernels
#endif  // HWY_ONCE

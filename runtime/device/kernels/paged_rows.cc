#include "runtime/device/kernels/paged_rows.h"

#include <algorithm>
#include <cmath>
#include <limits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "runtime/device/kernels/paged_rows.cc"
#include <hwy/foreach_target.h>  // must come before highway.h
#include <hwy/highway.h>

#include "runtime/device/kernels/exp-inl.h"
#include "runtime/device/kernels/paged_rows_plan.h"
#include "runtime/device/kernels/vector-inl.h"

HWY_BEFORE_NAMESPACE();
namespace hyperrun::kernels {
namespace HWY_NAMESPACE {

// The partial softmax of one query, all heads, over the positions so far.
struct Row {
  float* scores;   // [heads, kRowStride]
  float* sums;     // [heads, value_dim], to be divided by `weights`
  float* weights;  // [heads]
  float* max;      // [heads]
};

template <Number T>
HWY_NOINLINE void ScoreRun(const CachedShape& s, const T* q, const T* keys, std::int64_t n, float* scores) {
  const std::int64_t group = s.heads / s.kv_heads, width = s.head_dim;
  for (std::int64_t i = 0; i < n; ++i, keys += s.kv_heads * width) {
    for (std::int64_t h = 0; h < s.heads; ++h) {
      const T *key = keys + h / group * width, *query = q + h * width;
      scores[h * kRowStride + i] = SumOver(width, [=](auto d, std::int64_t c) HWY_ATTR {
        return hn::Mul(LoadFloats(d, query + c), LoadFloats(d, key + c));
      });
    }
  }
}

// Turns scores[0, n) of one head into weights, and rescales the sums so far to the new maximum.
HWY_NOINLINE void Weigh(std::int64_t n, float scale, std::int64_t width, float* scores, float* sums,
                        float& weight, float& max) {
  const float before = max;
  max = std::max(before, scale * MaxOf(n, scores));
  const float factor = std::exp(before - max), shift = max;
  ForEach(width, [=](auto d, std::int64_t c) HWY_ATTR {
    hn::StoreU(hn::Mul(hn::LoadU(d, sums + c), hn::Set(d, factor)), d, sums + c);
  });
  const float of_tile = SumOver(n, [=](auto d, std::int64_t c) HWY_ATTR {
    const auto e =
        ExpOfNegative(d, hn::MulAdd(hn::LoadU(d, scores + c), hn::Set(d, scale), hn::Set(d, -shift)));
    hn::StoreU(e, d, scores + c);
    return e;
  });
  weight = weight * factor + of_tile;
}

// Computes sums[c] += weights[i] * values[i][c] for each row i. The additions come one after the other, so
// the ends of runs change no bit.
template <Number T>
HWY_NOINLINE void SumRun(std::int64_t n, std::int64_t width, const float* weights, const T* values,
                         std::int64_t stride, float* sums) {
  ForEach(width, [=](auto d, std::int64_t c) HWY_ATTR {
    auto sum = hn::LoadU(d, sums + c);
    for (std::int64_t i = 0; i < n; ++i)
      sum = hn::MulAdd(hn::Set(d, weights[i]), LoadFloats(d, values + i * stride + c), sum);
    hn::StoreU(sum, d, sums + c);
  });
}

// Finishes a row, which sees the positions from `first` to before `seen`. The lse of head h is stored at
// [h * lse_stride], unless it is null.
template <Number T, Number O>
void Attend(const CachedShape& s, const std::int32_t* pages, std::int64_t first, std::int64_t seen,
            const T* q, const T* keys, const T* values, const Row& row, O* o, float* lse,
            std::int64_t lse_stride) {
  const float scale = s.scale > 0 ? s.scale : 1.0F / std::sqrt(static_cast<float>(s.head_dim));
  const std::int64_t key_row = s.kv_heads * s.head_dim, value_row = s.kv_heads * s.value_dim;
  const std::int64_t group = s.heads / s.kv_heads;
  std::fill_n(row.sums, s.heads * s.value_dim, 0.0F);
  std::fill_n(row.weights, s.heads, 0.0F);
  std::fill_n(row.max, s.heads, -std::numeric_limits<float>::infinity());
  for (std::int64_t from = first; from < seen; from += kRowTile) {
    const std::int64_t tile = std::min(kRowTile, seen - from);
    each_page_run(pages, s.page, from, tile, [&](std::int64_t i, std::int64_t at, std::int64_t n) HWY_ATTR {
      ScoreRun(s, q, keys + at * key_row, n, row.scores + i);
    });
    for (std::int64_t h = 0; h < s.heads; ++h)
      Weigh(tile, scale, s.value_dim, row.scores + h * kRowStride, row.sums + h * s.value_dim, row.weights[h],
            row.max[h]);
    each_page_run(pages, s.page, from, tile, [&](std::int64_t i, std::int64_t at, std::int64_t n) HWY_ATTR {
      for (std::int64_t h = 0; h < s.heads; ++h)
        SumRun(n, s.value_dim, row.scores + h * kRowStride + i,
               values + at * value_row + h / group * s.value_dim, value_row, row.sums + h * s.value_dim);
    });
  }
  for (std::int64_t h = 0; h < s.heads; ++h) {
    const float inverse = seen > first ? 1.0F / row.weights[h] : 0;
    const float* sums = row.sums + h * s.value_dim;
    O* to = o + h * s.value_dim;
    if (lse != nullptr) lse[h * lse_stride] = row.max[h] + std::log(row.weights[h]);
    ForEach(s.value_dim, [=](auto d, std::int64_t c) HWY_ATTR {
      StoreFloats(hn::Mul(hn::LoadU(d, sums + c), hn::Set(d, inverse)), d, to + c);
    });
  }
}

void AttendRows(const CachedShape& s, const CachedSequence& sequence, ConstArray q, ConstArray keys,
                ConstArray values, Array o, float* lse, float* scratch) {
  const Row row{scratch, scratch + s.heads * kRowStride, scratch + s.heads * (kRowStride + s.value_dim),
                scratch + s.heads * (kRowStride + s.value_dim + 1)};
  const Held held{s.page, s.parts, s.part};
  typed(q.dtype(), [&]<class T>(T) {
    const auto attend = [&]<class O>(O* to) {
      for (std::int64_t i = 0; i < sequence.count; ++i)
        Attend(s, sequence.pages,
               held.before(s.window > 0 ? std::max<std::int64_t>(0, sequence.start + i + 1 - s.window) : 0),
               held.before(sequence.start + i + 1), q.as<T>() + i * s.heads * s.head_dim, keys.as<T>(),
               values.as<T>(), row, to + i * s.heads * s.value_dim, lse == nullptr ? nullptr : lse + i,
               s.seq);
    };
    if (lse == nullptr)
      attend(o.as<T>());
    else
      attend(o.as<float>());
  });
}

}  // namespace HWY_NAMESPACE
}  // namespace hyperrun::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace hyperrun::kernels {
namespace {
HWY_EXPORT(AttendRows);
}  // namespace

std::int64_t paged_rows_scratch_bytes(const CachedShape& s) {
  return s.heads * (kRowStride + s.value_dim + 2) * static_cast<std::int64_t>(sizeof(float));
}

void paged_rows(const CachedShape& shape, const CachedSequence& sequence, ConstArray q, ConstArray keys,
                ConstArray values, Array o, void* scratch) {
  HWY_DYNAMIC_DISPATCH(AttendRows)
  (shape, sequence, q, keys, values, o, nullptr, static_cast<float*>(scratch));
}

void paged_rows_part(const CachedShape& shape, const CachedSequence& sequence, ConstArray q, ConstArray keys,
                     ConstArray values, float* o, float* lse, void* scratch) {
  HWY_DYNAMIC_DISPATCH(AttendRows)
  (shape, sequence, q, keys, values, Array(o), lse, static_cast<float*>(scratch));
}

}  // namespace hyperrun::kernels
#endif  // HWY_ONCE

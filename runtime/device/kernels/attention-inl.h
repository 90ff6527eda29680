// Code that the forward and the backward pass of attention share. See vector-inl.h for the guard.
#if defined(HYPERRUN_KERNELS_ATTENTION_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HYPERRUN_KERNELS_ATTENTION_INL_H_
#undef HYPERRUN_KERNELS_ATTENTION_INL_H_
#else
#define HYPERRUN_KERNELS_ATTENTION_INL_H_
#endif

#include <algorithm>
#include <concepts>
#include <cstring>

#include "runtime/device/kernels/attention_plan.h"
#include "runtime/device/kernels/exp-inl.h"
#include "runtime/device/kernels/product-inl.h"

HWY_BEFORE_NAMESPACE();
namespace hyperrun::kernels {
namespace HWY_NAMESPACE {

HWY_INLINE std::int64_t RoundToVector(std::int64_t n) {
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(F32()));
  return (n + lanes - 1) / lanes * lanes;
}

// Copies [rows, cols] of stride `stride` to contiguous rows. The stride of a head in a fused buffer is often
// a multiple of 2 KiB, which maps a column of rows onto a handful of cache sets.
template <Number T>
HWY_INLINE void PackRows(std::int64_t rows, std::int64_t cols, const T* from, std::int64_t stride,
                         float* to) {
  for (std::int64_t i = 0; i < rows; ++i, from += stride, to += cols) {
    ForEach(cols, [=](auto d, std::int64_t c) HWY_ATTR { StoreFloats(LoadFloats(d, from + c), d, to + c); });
  }
}

// Copies contiguous rows back, rounded.
template <Number T>
HWY_INLINE void UnpackRows(std::int64_t rows, std::int64_t cols, const float* from, T* to,
                           std::int64_t stride) {
  for (std::int64_t i = 0; i < rows; ++i, from += cols, to += stride) {
    ForEach(cols, [=](auto d, std::int64_t c) HWY_ATTR { StoreFloats(LoadFloats(d, from + c), d, to + c); });
  }
}

// Packs columns of a full panel up to a multiple of 4, four rows at a time. Returns the number of these
// columns.
HWY_INLINE std::int64_t PackQuads(std::int64_t count, std::int64_t width, const float* from,
                                  std::int64_t stride, float* to) {
  const std::int64_t quads = count == kPanel ? width / 4 * 4 : 0;
  for (std::int64_t j = 0; j < count; j += 4) {
    for (std::int64_t c = 0; c < quads; c += 4)
      Transpose4x4(from + j * stride + c, stride, to + c * kPanel + j, kPanel);
  }
  return quads;
}

// Packs [keys, width] of stride `stride` into transposed panels; keys beyond the end are zeros.
template <Number T>
HWY_INLINE void PackPanels(std::int64_t keys, std::int64_t width, const T* from, std::int64_t stride,
                           float* to) {
  for (std::int64_t first = 0; first < keys; first += kPanel, to += kPanel * width) {
    const std::int64_t count = std::min(kPanel, keys - first);
    std::int64_t done = 0;
    if constexpr (std::same_as<T, float>) done = PackQuads(count, width, from + first * stride, stride, to);
    for (std::int64_t j = 0; j < count && done < width; ++j) {
      const T* row = from + (first + j) * stride;
      for (std::int64_t c = done; c < width; ++c) to[c * kPanel + j] = to_float(row[c]);
    }
    for (std::int64_t c = 0; count < kPanel && c < width; ++c) {
      std::fill(to + c * kPanel + count, to + (c + 1) * kPanel, 0.0F);
    }
  }
}

// Computes scores[rows, seen] = left[rows, width] * panels, for the query rows [first, first + rows). Each
// strip goes from the panel of the first key that it sees up to the last key, rounded up to a vector.
HWY_INLINE void ScoreBlock(const AttentionPlan& plan, std::int64_t first, std::int64_t rows,
                           std::int64_t width, const float* left, const float* panels, float* scores) {
  const std::int64_t seen = plan.seen_before(first + rows);
  const std::int64_t begin = plan.first(first) / kPanel * kPanel;
  panels += begin * width;
  for (std::int64_t key = begin; key < seen; key += kPanel, panels += kPanel * width) {
    for (std::int64_t i = 0; i < rows; i += kStrip) {
      const std::int64_t height = std::min(kStrip, rows - i);
      const std::int64_t left_over = plan.seen_before(first + i + height) - key;
      if (left_over <= 0 || plan.first(first + i) >= key + kPanel) continue;
      Product<false>(height, RoundToVector(std::min(kPanel, left_over)), width,
                     Left{left + i * width, width, 1}, panels, kPanel, scores + i * plan.score_stride + key,
                     plan.score_stride);
    }
  }
}

// The keys that a strip of rows meets.
struct StripKeys {
  StripKeys(const AttentionPlan& plan, std::int64_t first, std::int64_t height)
      : begin(plan.first(first)), end(plan.seen_before(first + height)) {}
  std::int64_t begin, end;
};

// Writes zeros around [from, seen) as far as a strip of rows (`keys`) or of keys can read, so that products
// need no mask.
HWY_INLINE void ClearUnseen(StripKeys keys, std::int64_t from, std::int64_t seen, float* row) {
  const std::int64_t begin = std::max<std::int64_t>(0, std::min(keys.begin, from - kStrip));
  const std::int64_t end = std::max(keys.end, seen + kStrip);
  std::fill(row + begin, row + from, 0.0F);
  std::fill(row + seen, row + end, 0.0F);
}

}  // namespace HWY_NAMESPACE
}  // namespace hyperrun::kernels
HWY_AFTER_NAMESPACE();

#endif  // toggled guard

#include "runtime/device/kernels/merge_parts.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "runtime/device/kernels/merge_parts.cc"
#include <hwy/foreach_target.h>  // must come before highway.h
#include <hwy/highway.h>

#include "runtime/device/kernels/vector-inl.h"

HWY_BEFORE_NAMESPACE();
namespace hyperrun::kernels {
namespace HWY_NAMESPACE {

constexpr float kNone = -std::numeric_limits<float>::infinity();

// Merges one row of one head. `apart` is the distance from one part to the next.
template <Number O>
HWY_INLINE void MergeRow(const PartsShape& s, const float* parts, std::int64_t apart, const float* lse,
                         std::int64_t lse_apart, O* o) {
  float max = kNone, sum = 0;
  for (std::int64_t p = 0; p < s.parts; ++p) max = std::max(max, lse[p * lse_apart]);
  const auto weight = [&](std::int64_t p) { return max == kNone ? 0 : std::exp(lse[p * lse_apart] - max); };
  for (std::int64_t p = 0; p < s.parts; ++p) sum += weight(p);
  const float inverse = max == kNone ? 0 : 1 / sum;
  ForEach(s.width, [&](auto d, std::int64_t c) HWY_ATTR {
    auto row = hn::Zero(d);
    for (std::int64_t p = 0; p < s.parts; ++p)
      row = hn::MulAdd(hn::Set(d, weight(p) * inverse), hn::LoadU(d, parts + p * apart + c), row);
    StoreFloats(row, d, o + c);
  });
}

void Merge(const PartsShape& s, const float* parts, const float* lse, Array o) {
  const std::int64_t rows = s.batch * s.seq, apart = rows * s.heads * s.width, lse_apart = rows * s.heads;
  typed(o.dtype(), [&]<class O>(O) {
    for (std::int64_t row = 0; row < rows; ++row) {
      const std::int64_t b = row / s.seq, i = row % s.seq;
      for (std::int64_t h = 0; h < s.heads; ++h) {
        const std::int64_t at = (row * s.heads + h) * s.width;
        MergeRow(s, parts + at, apart, lse + (b * s.heads + h) * s.seq + i, lse_apart, o.as<O>() + at);
      }
    }
  });
}

}  // namespace HWY_NAMESPACE
}  // namespace hyperrun::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace hyperrun::kernels {
namespace {
HWY_EXPORT(Merge);
}  // namespace

void merge_parts(const PartsShape& shape, const float* parts, const float* lse, Array o) {
  HWY_DYNAMIC_DISPATCH(Merge)(shape, parts, lse, o);
}

}  // namespace hyperrun::kernels
#endif  // HWY_ONCE

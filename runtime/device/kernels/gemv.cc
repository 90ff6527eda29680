#include "runtime/device/kernels/gemv.h"

#include <algorithm>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "runtime/device/kernels/gemv.cc"
#include <hwy/cache_control.h>
#include <hwy/foreach_target.h>  // must come before highway.h
#include <hwy/highway.h>

#include "runtime/device/kernels/vector-inl.h"

HWY_BEFORE_NAMESPACE();
namespace hyperrun::kernels {
namespace HWY_NAMESPACE {

// Rows of a transposed B that are read side by side: a core has more loads under way from several rows than
// from one. Their sums are held in registers, of which AVX2 has 16.
constexpr int kRows = HWY_TARGET == HWY_AVX2 ? 8 : 16;
// Distance of prefetches, in columns. With all of these rows' columns under way at once, a small cache would
// lose the first before they are read.
constexpr std::int64_t kAhead = 128;
// Columns of B whose sums are held in registers, in vectors.
constexpr int kColumnVecs = 8;
// Distance of prefetches, in rows of B.
constexpr std::int64_t kRowsAhead = 8;

// Computes the products of `a` with kCount rows of B. At their ends it prefetches the first columns of the
// next rows: the processor itself does not look beyond a page.
template <int kCount>
HWY_INLINE void Dots(std::int64_t k, const float* HWY_RESTRICT a, const float* HWY_RESTRICT b,
                     std::int64_t ldb, bool accumulate, float* HWY_RESTRICT c) {
  const F32 d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  hn::Vec<F32> sum[kCount];
  float rest[kCount] = {};
  for (int r = 0; r < kCount; ++r) sum[r] = hn::Zero(d);
  const std::int64_t ahead = std::min(kAhead, k);
  std::int64_t p = 0;
  for (; p + lanes <= k; p += lanes) {
    const auto ap = hn::LoadU(d, a + p);
    const std::int64_t due = p + ahead;
    const float* called = due < k ? b + due : b + kCount * ldb + (due - k);
    for (int r = 0; r < kCount; ++r) {
      hwy::Prefetch(called + r * ldb);
      sum[r] = hn::MulAdd(ap, hn::LoadU(d, b + r * ldb + p), sum[r]);
    }
  }
  for (; p < k; ++p) {
    for (int r = 0; r < kCount; ++r) rest[r] += a[p] * b[r * ldb + p];
  }
  for (int r = 0; r < kCount; ++r)
    c[r] = hn::GetLane(hn::SumOfLanes(d, sum[r])) + rest[r] + (accumulate ? c[r] : 0.0F);
}

HWY_NOINLINE void Rows(std::int64_t n, std::int64_t k, const float* a, const float* b, std::int64_t ldb,
                       bool accumulate, float* c) {
  std::int64_t j = 0;
  for (; j + kRows <= n; j += kRows) Dots<kRows>(k, a, b + j * ldb, ldb, accumulate, c + j);
  for (; j + 4 <= n; j += 4) Dots<4>(k, a, b + j * ldb, ldb, accumulate, c + j);
  for (; j < n; ++j) Dots<1>(k, a, b + j * ldb, ldb, accumulate, c + j);
}

template <int kVecs, class D>
HWY_INLINE void SumOfRows(D d, std::int64_t k, const float* HWY_RESTRICT a, const float* HWY_RESTRICT b,
                          std::int64_t ldb, bool accumulate, float* HWY_RESTRICT c) {
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  hn::Vec<D> sum[kVecs];
  for (int v = 0; v < kVecs; ++v) sum[v] = accumulate ? hn::LoadU(d, c + v * lanes) : hn::Zero(d);
  for (std::int64_t p = 0; p < k; ++p, b += ldb) {
    const auto ap = hn::Set(d, a[p]);
    for (int v = 0; v < kVecs; ++v) {
      hwy::Prefetch(b + kRowsAhead * ldb + v * lanes);
      sum[v] = hn::MulAdd(ap, hn::LoadU(d, b + v * lanes), sum[v]);
    }
  }
  for (int v = 0; v < kVecs; ++v) hn::StoreU(sum[v], d, c + v * lanes);
}

HWY_NOINLINE void Columns(std::int64_t n, std::int64_t k, const float* a, const float* b, std::int64_t ldb,
                          bool accumulate, float* c) {
  const F32 d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  std::int64_t j = 0;
  for (; j + kColumnVecs * lanes <= n; j += kColumnVecs * lanes)
    SumOfRows<kColumnVecs>(d, k, a, b + j, ldb, accumulate, c + j);
  for (; j + lanes <= n; j += lanes) SumOfRows<1>(d, k, a, b + j, ldb, accumulate, c + j);
  for (; j < n; ++j) SumOfRows<1>(OneF32(), k, a, b + j, ldb, accumulate, c + j);
}

void Multiply(Trans trans_b, std::int64_t n, std::int64_t k, const float* a, const float* b, std::int64_t ldb,
              bool accumulate, float* c) {
  (trans_b == Trans::kYes ? Rows : Columns)(n, k, a, b, ldb, accumulate, c);
}

}  // namespace HWY_NAMESPACE
}  // namespace hyperrun::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace hyperrun::kernels {
namespace {
HWY_EXPORT(Multiply);
}  // namespace

void gemv(Trans trans_b, std::int64_t n, std::int64_t k, const float* a, const float* b, std::int64_t ldb,
          bool accumulate, float* c) {
  HWY_DYNAMIC_DISPATCH(Multiply)(trans_b, n, k, a, b, ldb, accumulate, c);
}

}  // namespace hyperrun::kernels
#endif  // HWY_ONCE

// Small matrix products for attention. Their operands are narrow (head_dim columns) and lie in cache, so they
// need no packing and no calls, and follow the causal triangle strip by strip. See vector-inl.h for the
// guard.
#if defined(HYPERRUN_KERNELS_PRODUCT_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HYPERRUN_KERNELS_PRODUCT_INL_H_
#undef HYPERRUN_KERNELS_PRODUCT_INL_H_
#else
#define HYPERRUN_KERNELS_PRODUCT_INL_H_
#endif

#include "runtime/device/kernels/attention_plan.h"
#include "runtime/device/kernels/vector-inl.h"

HWY_BEFORE_NAMESPACE();
namespace hyperrun::kernels {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// The left operand. Element (i, p) of A is a[i * row + p * step], so it is plain or transposed without a
// copy.
struct Left {
  const float* a;
  std::int64_t row, step;
};

// Transposes: to[c * step + j] = from[j][c] for 4 rows j and 4 columns c.
HWY_INLINE void Transpose4x4(const float* HWY_RESTRICT from, std::int64_t ld, float* HWY_RESTRICT to,
                             std::int64_t step) {
#if HWY_TARGET == HWY_SCALAR
  for (int j = 0; j < 4; ++j) {
    for (int c = 0; c < 4; ++c) to[c * step + j] = from[j * ld + c];
  }
#else
  const hn::FixedTag<float, 4> d;
  const hn::Repartition<double, decltype(d)> wide;
  const auto r0 = hn::LoadU(d, from), r1 = hn::LoadU(d, from + ld), r2 = hn::LoadU(d, from + 2 * ld),
             r3 = hn::LoadU(d, from + 3 * ld);
  const auto a = hn::BitCast(wide, hn::InterleaveLower(d, r0, r1));
  const auto b = hn::BitCast(wide, hn::InterleaveLower(d, r2, r3));
  const auto e = hn::BitCast(wide, hn::InterleaveUpper(d, r0, r1));
  const auto f = hn::BitCast(wide, hn::InterleaveUpper(d, r2, r3));
  hn::StoreU(hn::BitCast(d, hn::InterleaveLower(wide, a, b)), d, to);
  hn::StoreU(hn::BitCast(d, hn::InterleaveUpper(wide, a, b)), d, to + step);
  hn::StoreU(hn::BitCast(d, hn::InterleaveLower(wide, e, f)), d, to + 2 * step);
  hn::StoreU(hn::BitCast(d, hn::InterleaveUpper(wide, e, f)), d, to + 3 * step);
#endif
}

// Access to tiles in memory: whole vectors ...
template <class D>
struct Whole {
  HWY_INLINE hn::Vec<D> Load(D d, const float* from) const { return hn::LoadU(d, from); }
  HWY_INLINE void Store(hn::Vec<D> v, D d, float* to) const { hn::StoreU(v, d, to); }
};
// ... or their first lanes; nothing behind them is read or written.
template <class D>
struct First {
  hn::Mask<D> lanes;
  HWY_INLINE hn::Vec<D> Load(D d, const float* from) const { return hn::MaskedLoad(lanes, d, from); }
  HWY_INLINE void Store(hn::Vec<D> v, D d, float* to) const { hn::BlendedStore(v, lanes, d, to); }
};

// A tile of C of kRows rows and kVecs vectors stays in registers over all of k: 6 x 4 accumulators of the 32
// registers of AVX-512, 6 x 2 of the 16 of AVX2.
inline constexpr int kMaxVecs = HWY_TARGET == HWY_AVX2 ? 2 : 4;

template <int kRows, int kVecs, bool kAccumulate, class D, class Memory = Whole<D>>
HWY_INLINE void ProductTile(D d, std::int64_t k, Left left, const float* HWY_RESTRICT b, std::int64_t ldb,
                            float* HWY_RESTRICT c, std::int64_t ldc, Memory memory = {}) {
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  hn::Vec<D> sum[kRows][kVecs];
  const float* a[kRows];
  for (int i = 0; i < kRows; ++i) {
    a[i] = left.a + i * left.row;
    for (int j = 0; j < kVecs; ++j) {
      sum[i][j] = kAccumulate ? memory.Load(d, c + i * ldc + j * lanes) : hn::Zero(d);
    }
  }
  std::int64_t at = 0;
  for (std::int64_t p = 0; p < k; ++p, at += left.step, b += ldb) {
    hn::Vec<D> bp[kVecs];
    for (int j = 0; j < kVecs; ++j) bp[j] = memory.Load(d, b + j * lanes);
    for (int i = 0; i < kRows; ++i) {
      const auto ai = hn::Set(d, a[i][at]);
      for (int j = 0; j < kVecs; ++j) sum[i][j] = hn::MulAdd(ai, bp[j], sum[i][j]);
    }
  }
  for (int i = 0; i < kRows; ++i) {
    for (int j = 0; j < kVecs; ++j) memory.Store(sum[i][j], d, c + i * ldc + j * lanes);
  }
}

// Computes n columns, fewer than a vector has: one vector, if the processor can mask lanes.
template <int kRows, bool kAccumulate>
HWY_INLINE void ProductTail(std::int64_t n, std::int64_t k, Left left, const float* b, std::int64_t ldb,
                            float* c, std::int64_t ldc) {
#if HWY_TARGET <= HWY_AVX2
  const F32 d;
  const First<F32> first{hn::FirstN(d, static_cast<std::size_t>(n))};
  ProductTile<kRows, 1, kAccumulate>(d, k, left, b, ldb, c, ldc, first);
#else
  for (std::int64_t j = 0; j < n; ++j)
    ProductTile<kRows, 1, kAccumulate>(OneF32(), k, left, b + j, ldb, c + j, ldc);
#endif
}

template <int kRows, bool kAccumulate>
HWY_NOINLINE void ProductRows(std::int64_t n, std::int64_t k, Left left, const float* b, std::int64_t ldb,
                              float* c, std::int64_t ldc) {
  const F32 d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  std::int64_t j = 0;
  for (; j + kMaxVecs * lanes <= n; j += kMaxVecs * lanes) {
    ProductTile<kRows, kMaxVecs, kAccumulate>(d, k, left, b + j, ldb, c + j, ldc);
  }
  if (j + 2 * lanes <= n) {
    ProductTile<kRows, 2, kAccumulate>(d, k, left, b + j, ldb, c + j, ldc);
    j += 2 * lanes;
  }
  if (j + lanes <= n) {
    ProductTile<kRows, 1, kAccumulate>(d, k, left, b + j, ldb, c + j, ldc);
    j += lanes;
  }
  if (j < n) ProductTail<kRows, kAccumulate>(n - j, k, left, b + j, ldb, c + j, ldc);
}

// Computes C[m,n] = A[m,k] B[k,n], or += if kAccumulate, for a strip of m <= kStrip rows.
template <bool kAccumulate>
HWY_INLINE void Product(std::int64_t m, std::int64_t n, std::int64_t k, Left left, const float* b,
                        std::int64_t ldb, float* c, std::int64_t ldc) {
  static_assert(kStrip == 6, "one case a height");
  switch (m) {
    case 6: return ProductRows<6, kAccumulate>(n, k, left, b, ldb, c, ldc);
    case 5: return ProductRows<5, kAccumulate>(n, k, left, b, ldb, c, ldc);
    case 4: return ProductRows<4, kAccumulate>(n, k, left, b, ldb, c, ldc);
    case 3: return ProductRows<3, kAccumulate>(n, k, left, b, ldb, c, ldc);
    case 2: return ProductRows<2, kAccumulate>(n, k, left, b, ldb, c, ldc);
    case 1: return ProductRows<1, kAccumulate>(n, k, left, b, ldb, c, ldc);
    default: return;
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace hyperrun::kernels
HWY_AFTER_NAMESPACE();

#endif  // toggled guard

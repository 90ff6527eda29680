#include "runtime/device/kernels/normal_blocks.h"

#include <cmath>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "runtime/device/kernels/normal_blocks.cc"
#include <hwy/foreach_target.h>  // must come before highway.h
#include <hwy/highway.h>

#include "runtime/device/kernels/random.h"

// Algorithm AS 241, PPND7 (Wichura 1988), with about seven digits. It is computed in double with only + * /
// (and log, sqrt in the tails), and without fused products (the build forbids them here), so that every
// x86-64 gets the same bits.
#ifndef HYPERRUN_NORMAL_BLOCKS_CONSTANTS
#define HYPERRUN_NORMAL_BLOCKS_CONSTANTS
namespace hyperrun::kernels {
namespace {
constexpr double kCentral = 0.425;  // |p - 0.5| up to here: one rational function
constexpr std::array kNumerator = {59.109374720, 159.29113202, 50.434271938, 3.3871327179};
constexpr std::array kDenominator = {67.187563600, 78.757757664, 17.895169469, 1.0};
constexpr std::array kTailNumerator = {0.17023821103, 1.3067284816, 2.7568153900, 1.4234372777};
constexpr std::array kTailDenominator = {0.12021132975, 0.73700164250, 1.0};
}  // namespace
}  // namespace hyperrun::kernels
#endif

HWY_BEFORE_NAMESPACE();
namespace hyperrun::kernels {
namespace HWY_NAMESPACE {
namespace {

#if HWY_TARGET == HWY_SCALAR

std::int64_t Blocks(const NormalStream&, std::uint64_t, std::int64_t, float*) { return 0; }

#else

namespace hn = hwy::HWY_NAMESPACE;

template <class D, class V, std::size_t N>
HWY_INLINE V Polynomial(D d, V x, const std::array<double, N>& c) {
  V y = hn::Set(d, c[0]);
  for (std::size_t i = 1; i < N; ++i) y = hn::Add(hn::Mul(y, x), hn::Set(d, c[i]));
  return y;
}

// Philox words live in the low halves of 64-bit lanes; the upper halves do not matter.
template <class D, class V>
HWY_INLINE void Philox(D d, const std::array<std::uint32_t, 2>& key, V& c0, V& c1, V& c2, V& c3) {
  const hn::Repartition<std::uint32_t, D> half;
  const auto m0 = hn::BitCast(half, hn::Set(d, 0xD2511F53U)), m1 = hn::BitCast(half, hn::Set(d, 0xCD9E8D57U));
  std::uint32_t k0 = key[0], k1 = key[1];
  for (int round = 0; round < 10; ++round) {
    const V a = hn::MulEven(m0, hn::BitCast(half, c0)), b = hn::MulEven(m1, hn::BitCast(half, c2));
    c0 = hn::Xor(hn::Xor(hn::ShiftRight<32>(b), c1), hn::Set(d, std::uint64_t{k0}));
    c2 = hn::Xor(hn::Xor(hn::ShiftRight<32>(a), c3), hn::Set(d, std::uint64_t{k1}));
    c1 = b;
    c3 = a;
    k0 += 0x9E3779B9U;
    k1 += 0xBB67AE85U;
  }
}

// Computes the deviates of a vector of words; `tails` are the lanes outside the central function's range.
template <class D, class V, class Tails>
HWY_INLINE hn::Vec<D> Central(D d, V words, double std, Tails& tails) {
  const hn::RebindToUnsigned<D> du;
  // This is 2^52 + word, exactly, without a conversion of 64-bit integers, which few processors have.
  const auto biased = hn::Or(hn::And(words, hn::Set(du, 0xFFFFFFFFU)), hn::Set(du, 0x4330000000000000U));
  const auto word = hn::Sub(hn::BitCast(d, biased), hn::Set(d, 0x1p52));
  const auto p = hn::Mul(hn::Add(word, hn::Set(d, 0.5)), hn::Set(d, 0x1p-32));
  const auto q = hn::Sub(p, hn::Set(d, 0.5));
  tails = hn::Gt(hn::Abs(q), hn::Set(d, kCentral));
  const auto r = hn::Sub(hn::Set(d, 0.180625), hn::Mul(q, q));
  const auto value = hn::Mul(q, hn::Div(Polynomial(d, r, kNumerator), Polynomial(d, r, kDenominator)));
  return hn::Mul(hn::Set(d, std), value);
}

// Computes whole vectors of blocks, and returns the number of blocks done.
std::int64_t Blocks(const NormalStream& stream, std::uint64_t first, std::int64_t blocks, float* out) {
  const hn::ScalableTag<std::uint64_t> du;
  const hn::ScalableTag<double> dd;
  const hn::Rebind<float, decltype(dd)> df;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(du));
  std::int64_t at = 0;
  for (; at + lanes <= blocks; at += lanes) {
    const auto index = hn::Iota(du, first + static_cast<std::uint64_t>(at));
    auto c0 = index, c1 = hn::ShiftRight<32>(index), c2 = hn::Set(du, stream.tensor),
         c3 = hn::Set(du, stream.tensor >> 32);
    Philox(du, stream.key, c0, c1, c2, c3);
    hn::Mask<decltype(dd)> t0, t1, t2, t3;
    const auto v0 = hn::DemoteTo(df, Central(dd, c0, stream.std, t0));
    const auto v1 = hn::DemoteTo(df, Central(dd, c1, stream.std, t1));
    const auto v2 = hn::DemoteTo(df, Central(dd, c2, stream.std, t2));
    const auto v3 = hn::DemoteTo(df, Central(dd, c3, stream.std, t3));
    float* to = out + 4 * at;
    hn::StoreInterleaved4(v0, v1, v2, v3, df, to);
    const auto tails = hn::Or(hn::Or(t0, t1), hn::Or(t2, t3));
    if (hn::AllFalse(dd, tails)) continue;
    HWY_ALIGN std::array<std::uint64_t, 4 * hn::MaxLanes(du)> words;
    HWY_ALIGN std::array<std::uint8_t, 8> bits{};
    const auto redo = [&](auto c, auto mask, std::int64_t word) HWY_ATTR {
      hn::StoreU(c, du, words.data());
      hn::StoreMaskBits(dd, mask, bits.data());
      for (std::int64_t i = 0; i < lanes; ++i)
        if ((bits[static_cast<std::size_t>(i / 8)] >> (i % 8)) & 1)
          to[4 * i + word] =
              normal_of(static_cast<std::uint32_t>(words[static_cast<std::size_t>(i)]), stream.std);
    };
    redo(c0, t0, 0);
    redo(c1, t1, 1);
    redo(c2, t2, 2);
    redo(c3, t3, 3);
  }
  return at;
}

#endif

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace hyperrun::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace hyperrun::kernels {
namespace {

HWY_EXPORT(Blocks);

template <std::size_t N>
double polynomial(double x, const std::array<double, N>& c) {
  double y = c[0];
  for (std::size_t i = 1; i < N; ++i) y = y * x + c[i];
  return y;
}

double inverse_normal(double p) {
  const double q = p - 0.5;
  if (std::abs(q) <= kCentral) {
    const double r = 0.180625 - q * q;
    return q * (polynomial(r, kNumerator) / polynomial(r, kDenominator));
  }
  // The algorithm's third range begins at p < e^-25, which no 32-bit word reaches.
  const double r = std::sqrt(-std::log(q < 0 ? p : 1.0 - p)) - 1.6;
  const double value = polynomial(r, kTailNumerator) / polynomial(r, kTailDenominator);
  return q < 0 ? -value : value;
}

}  // namespace

float normal_of(std::uint32_t word, double std) {
  return static_cast<float>(std * inverse_normal((static_cast<double>(word) + 0.5) * 0x1p-32));
}

void normal_blocks(const NormalStream& stream, std::uint64_t first, std::int64_t blocks, float* out) {
  for (std::int64_t b = HWY_DYNAMIC_DISPATCH(Blocks)(stream, first, blocks, out); b < blocks; ++b) {
    const std::uint64_t index = first + static_cast<std::uint64_t>(b);
    const auto words =
        philox({static_cast<std::uint32_t>(index), static_cast<std::uint32_t>(index >> 32),
                static_cast<std::uint32_t>(stream.tensor), static_cast<std::uint32_t>(stream.tensor >> 32)},
               stream.key);
    for (std::size_t w = 0; w < 4; ++w)
      out[4 * b + static_cast<std::int64_t>(w)] = normal_of(words[w], stream.std);
  }
}

}  // namespace hyperrun::kernels
#endif  // HWY_ONCE

#include "runtime/device/kernels/swiglu.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "runtime/device/kernels/swiglu.cc"
#include <hwy/foreach_target.h>  // must come before highway.h
#include <hwy/highway.h>

#include "runtime/device/kernels/exp-inl.h"
#include "runtime/device/kernels/vector-inl.h"

HWY_BEFORE_NAMESPACE();
namespace hyperrun::kernels {
namespace HWY_NAMESPACE {

template <Number T>
void SwigluAs(std::int64_t rows, std::int64_t cols, const T* g, const T* u, std::int64_t ld, T* h) {
  for (std::int64_t row = 0; row < rows; ++row, g += ld, u += ld, h += cols) {
    ForEach(cols, [=](auto d, std::int64_t i) HWY_ATTR {
      const auto gi = LoadFloats(d, g + i);
      const auto silu = hn::Mul(gi, Sigmoid(d, gi));
      StoreFloats(hn::Mul(silu, LoadFloats(d, u + i)), d, h + i);
    });
  }
}

// The gradients, with s = sigmoid(g): dg = dh u s (1 + g (1 - s)), du = dh g s.
template <Number T>
void SwigluBackwardAs(std::int64_t rows, std::int64_t cols, const T* g, const T* u, std::int64_t ld,
                      const T* dh, T* dg, T* du) {
  for (std::int64_t row = 0; row < rows; ++row, g += ld, u += ld, dg += ld, du += ld, dh += cols) {
    ForEach(cols, [=](auto d, std::int64_t i) HWY_ATTR {
      const auto gi = LoadFloats(d, g + i), ui = LoadFloats(d, u + i), dhi = LoadFloats(d, dh + i);
      const auto s = Sigmoid(d, gi);
      const auto silu = hn::Mul(gi, s);
      const auto slope = hn::MulAdd(silu, hn::Sub(hn::Set(d, 1.0F), s), s);
      StoreFloats(hn::Mul(dhi, silu), d, du + i);
      StoreFloats(hn::Mul(hn::Mul(dhi, ui), slope), d, dg + i);
    });
  }
}

void Swiglu(std::int64_t rows, std::int64_t cols, ConstArray g, ConstArray u, std::int64_t ld, Array h) {
  typed(h.dtype(), [&]<class T>(T) { SwigluAs(rows, cols, g.as<T>(), u.as<T>(), ld, h.as<T>()); });
}

void SwigluBackward(std::int64_t rows, std::int64_t cols, ConstArray g, ConstArray u, std::int64_t ld,
                    ConstArray dh, Array dg, Array du) {
  typed(dh.dtype(), [&]<class T>(T) {
    SwigluBackwardAs(rows, cols, g.as<T>(), u.as<T>(), ld, dh.as<T>(), dg.as<T>(), du.as<T>());
  });
}

}  // namespace HWY_NAMESPACE
}  // namespace hyperrun::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace hyperrun::kernels {
namespace {
HWY_EXPORT(Swiglu);
HWY_EXPORT(SwigluBackward);
}  // namespace

void swiglu(std::int64_t rows, std::int64_t cols, ConstArray g, ConstArray u, std::int64_t ld_gu, Array h) {
  HWY_DYNAMIC_DISPATCH(Swiglu)(rows, cols, g, u, ld_gu, h);
}

void swiglu_backward(std::int64_t rows, std::int64_t cols, ConstArray g, ConstArray u, std::int64_t ld_gu,
                     ConstArray dh, Array dg, Array du) {
  HWY_DYNAMIC_DISPATCH(SwigluBackward)(rows, cols, g, u, ld_gu, dh, dg, du);
}

}  // namespace hyperrun::kernels
#endif  // HWY_ONCE

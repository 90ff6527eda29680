#include "runtime/device/kernels/gelu.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "runtime/device/kernels/gelu.cc"
#include <hwy/foreach_target.h>  // must come before highway.h
#include <hwy/highway.h>

#include "runtime/device/kernels/exp-inl.h"
#include "runtime/device/kernels/vector-inl.h"

HWY_BEFORE_NAMESPACE();
namespace hyperrun::kernels {
namespace HWY_NAMESPACE {

// (1 + tanh u) / 2 = sigmoid(2 u), and 2 u = x (kLinear + kCubic x^2).
inline constexpr float kLinear = 1.59576912F;  // 2 sqrt(2 / pi)
inline constexpr float kCubic = 0.044715F * kLinear;

template <class D, class V = hn::Vec<D>>
HWY_INLINE V Gate(D d, V x, V squared) {
  return Sigmoid(d, hn::Mul(x, hn::MulAdd(squared, hn::Set(d, kCubic), hn::Set(d, kLinear))));
}

template <Number T>
void GeluAs(std::int64_t n, const T* x, T* y) {
  ForEach(n, [=](auto d, std::int64_t i) HWY_ATTR {
    const auto v = LoadFloats(d, x + i);
    StoreFloats(hn::Mul(v, Gate(d, v, hn::Mul(v, v))), d, y + i);
  });
}

// The gradient, with s the gate: dx = dy (s + s (1 - s) x (kLinear + 3 kCubic x^2)).
template <Number T>
void GeluBackwardAs(std::int64_t n, const T* x, const T* dy, T* dx) {
  ForEach(n, [=](auto d, std::int64_t i) HWY_ATTR {
    const auto v = LoadFloats(d, x + i), squared = hn::Mul(v, v);
    const auto s = Gate(d, v, squared);
    const auto inner = hn::Mul(v, hn::MulAdd(squared, hn::Set(d, 3 * kCubic), hn::Set(d, kLinear)));
    const auto slope = hn::MulAdd(hn::Mul(s, hn::Sub(hn::Set(d, 1.0F), s)), inner, s);
    StoreFloats(hn::Mul(LoadFloats(d, dy + i), slope), d, dx + i);
  });
}

void Gelu(std::int64_t n, ConstArray x, Array y) {
  typed(y.dtype(), [&]<class T>(T) { GeluAs(n, x.as<T>(), y.as<T>()); });
}

void GeluBackward(std::int64_t n, ConstArray x, ConstArray dy, Array dx) {
  typed(dx.dtype(), [&]<class T>(T) { GeluBackwardAs(n, x.as<T>(), dy.as<T>(), dx.as<T>()); });
}

}  // namespace HWY_NAMESPACE
}  // namespace hyperrun::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace hyperrun::kernels {
namespace {
HWY_EXPORT(Gelu);
HWY_EXPORT(GeluBackward);
}  // namespace

void gelu(std::int64_t n, ConstArray x, Array y) { HWY_DYNAMIC_DISPATCH(Gelu)(n, x, y); }

void gelu_backward(std::int64_t n, ConstArray x, ConstArray dy, Array dx) {
  HWY_DYNAMIC_DISPATCH(GeluBackward)(n, x, dy, dx);
}

}  // namespace hyperrun::kernels
#endif  // HWY_ONCE

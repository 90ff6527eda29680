#include "runtime/device/kernels/norm.h"

#include <cmath>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "runtime/device/kernels/norm.cc"
#include <hwy/foreach_target.h>  // must come before highway.h
#include <hwy/highway.h>

#include "runtime/device/kernels/vector-inl.h"

HWY_BEFORE_NAMESPACE();
namespace hyperrun::kernels {
namespace HWY_NAMESPACE {

float NormRow(std::int64_t n, const float* x, const float* HWY_RESTRICT w, float eps, float* y) {
  const float squares = SumOver(n, [=](auto d, std::int64_t i) HWY_ATTR {
    const auto v = hn::LoadU(d, x + i);
    return hn::Mul(v, v);
  });
  const float r = 1.0F / std::sqrt(squares / static_cast<float>(n) + eps);
  ForEach(n, [=](auto d, std::int64_t i) HWY_ATTR {
    const auto v = hn::Mul(hn::LoadU(d, x + i), hn::Set(d, r));
    hn::StoreU(hn::Mul(v, hn::LoadU(d, w + i)), d, y + i);
  });
  return r;
}

void RmsNorm(std::int64_t rows, std::int64_t n, const float* x, const float* w, float eps, float* y,
             float* rstd) {
  for (std::int64_t row = 0; row < rows; ++row) rstd[row] = NormRow(n, x + row * n, w, eps, y + row * n);
}

// dx = [addend +] r w dy - x r^3 / n sum(w dy x);  dw += r x dy.
template <bool kAddend>
HWY_INLINE void NormRowBackward(std::int64_t n, const float* dy, const float* x, const float* HWY_RESTRICT w,
                                float r, const float* addend, float* dx, float* HWY_RESTRICT dw) {
  const float dot = SumOver(n, [=](auto d, std::int64_t i) HWY_ATTR {
    return hn::Mul(hn::Mul(hn::LoadU(d, dy + i), hn::LoadU(d, w + i)), hn::LoadU(d, x + i));
  });
  const float pull = dot * r * r * r / static_cast<float>(n);
  ForEach(n, [=](auto d, std::int64_t i) HWY_ATTR {
    const auto xi = hn::LoadU(d, x + i);
    const auto rdy = hn::Mul(hn::LoadU(d, dy + i), hn::Set(d, r));
    auto g = hn::Mul(rdy, hn::LoadU(d, w + i));
    if constexpr (kAddend) g = hn::Add(g, hn::LoadU(d, addend + i));
    hn::StoreU(hn::MulAdd(rdy, xi, hn::LoadU(d, dw + i)), d, dw + i);
    hn::StoreU(hn::NegMulAdd(xi, hn::Set(d, pull), g), d, dx + i);
  });
}

void RmsNormBackward(std::int64_t rows, std::int64_t n, const float* dy, const float* x, const float* w,
                     const float* rstd, const float* addend, float* dx, float* dw) {
  for (std::int64_t row = 0; row < rows; ++row) {
    const std::int64_t at = row * n;
    if (addend != nullptr) {
      NormRowBackward<true>(n, dy + at, x + at, w, rstd[row], addend + at, dx + at, dw);
    } else {
      NormRowBackward<false>(n, dy + at, x + at, w, rstd[row], nullptr, dx + at, dw);
    }
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace hyperrun::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "runtime/device/kernels/elementwise.h"

namespace hyperrun::kernels {
namespace {
HWY_EXPORT(RmsNorm);
HWY_EXPORT(RmsNormBackward);
}  // namespace

void rms_norm(std::int64_t rows, std::int64_t d, const float* x, const float* w, float eps, float* y,
              float* rstd) {
  HWY_DYNAMIC_DISPATCH(RmsNorm)(rows, d, x, w, eps, y, rstd);
}

void rms_norm_backward(std::int64_t rows, std::int64_t d, const float* dy, const float* x, const float* w,
                       const float* rstd, const float* addend, float* dx, float* dw, bool accumulate_dw) {
  if (!accumulate_dw) fill(d, 0.0F, dw);
  HWY_DYNAMIC_DISPATCH(RmsNormBackward)(rows, d, dy, x, w, rstd, addend, dx, dw);
}

}  // namespace hyperrun::kernels
#endif  // HWY_ONCE

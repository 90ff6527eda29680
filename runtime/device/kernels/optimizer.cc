#include "runtime/device/kernels/optimizer.h"

#include <cmath>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "runtime/device/kernels/optimizer.cc"
#include <hwy/foreach_target.h>  // must come before highway.h
#include <hwy/highway.h>

#include "runtime/device/kernels/vector-inl.h"

HWY_BEFORE_NAMESPACE();
namespace hyperrun::kernels {
namespace HWY_NAMESPACE {

void AdamWStep(std::int64_t n, const AdamW& a, const float* g, float* w, float* m, float* v) {
  const AdamW p = a;
  const float inverse_bias1 = 1.0F / p.bias1, inverse_bias2 = 1.0F / p.bias2;
  ForEach(n, [=](auto d, std::int64_t i) HWY_ATTR {
    const auto gi = hn::Mul(hn::LoadU(d, g + i), hn::Set(d, p.grad_factor));
    const auto mi =
        hn::MulAdd(hn::Set(d, p.beta1), hn::LoadU(d, m + i), hn::Mul(hn::Set(d, 1 - p.beta1), gi));
    const auto square = hn::Mul(hn::Mul(hn::Set(d, 1 - p.beta2), gi), gi);
    const auto vi = hn::MulAdd(hn::Set(d, p.beta2), hn::LoadU(d, v + i), square);
    hn::StoreU(mi, d, m + i);
    hn::StoreU(vi, d, v + i);
    const auto root = hn::Sqrt(hn::Mul(vi, hn::Set(d, inverse_bias2)));
    const auto step = hn::Div(hn::Mul(mi, hn::Set(d, inverse_bias1)), hn::Add(root, hn::Set(d, p.eps)));
    const auto wi = hn::LoadU(d, w + i);
    const auto move = hn::MulAdd(hn::Set(d, p.weight_decay), wi, step);
    hn::StoreU(hn::NegMulAdd(hn::Set(d, p.lr), move, wi), d, w + i);
  });
}

}  // namespace HWY_NAMESPACE
}  // namespace hyperrun::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace hyperrun::kernels {
namespace {
HWY_EXPORT(AdamWStep);
}  // namespace

float bias_correction(double beta, std::int64_t step) {
  return static_cast<float>(1.0 - std::pow(beta, static_cast<double>(step)));
}

void adamw(std::int64_t n, const AdamW& a, const float* g, float* w, float* m, float* v) {
  HWY_DYNAMIC_DISPATCH(AdamWStep)(n, a, g, w, m, v);
}

ClipFactor clip_factor(float sum_of_squares, float max_norm) {
  ClipFactor clip;
  clip.norm = std::sqrt(sum_of_squares);
  if (max_norm > 0 && clip.norm > max_norm) clip.factor = max_norm / clip.norm;
  return clip;
}

}  // namespace hyperrun::kernels
#endif  // HWY_ONCE

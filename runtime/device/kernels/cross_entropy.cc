#include "runtime/device/kernels/cross_entropy.h"

#include <algorithm>
#include <cmath>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "runtime/device/kernels/cross_entropy.cc"
#include <hwy/foreach_target.h>  // must come before highway.h
#include <hwy/highway.h>

#include "runtime/device/kernels/exp-inl.h"
#include "runtime/device/kernels/vector-inl.h"

HWY_BEFORE_NAMESPACE();
namespace hyperrun::kernels {
namespace HWY_NAMESPACE {

float MaxRow(std::int64_t n, ConstArray x) {
  float max = 0;
  typed(x.dtype(), [&]<class T>(T) { max = MaxOf(n, x.as<T>()); });
  return max;
}

// Turns x into exp((x - max) * scale); returns the sum.
template <Number T>
float ExpRowAs(std::int64_t n, float max, float scale, T* x) {
  return SumOver(n, [=](auto d, std::int64_t i) HWY_ATTR {
    const auto below = hn::Sub(LoadFloats(d, x + i), hn::Set(d, max));
    const auto e = ExpOfNegative(d, hn::Mul(below, hn::Set(d, scale)));
    StoreFloats(e, d, x + i);
    return e;
  });
}

float ExpRow(std::int64_t n, float max, float scale, Array x) {
  float sum = 0;
  typed(x.dtype(), [&]<class T>(T) { sum = ExpRowAs(n, max, scale, x.as<T>()); });
  return sum;
}

}  // namespace HWY_NAMESPACE
}  // namespace hyperrun::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "runtime/device/kernels/elementwise.h"

namespace hyperrun::kernels {
namespace {
HWY_EXPORT(MaxRow);
HWY_EXPORT(ExpRow);

float element(ConstArray x, std::int64_t i) {
  return x.dtype() == DType::kBF16 ? to_float(x.as<Bf16>()[i]) : x.as<float>()[i];
}

void set_element(Array x, std::int64_t i, float value) {
  typed(x.dtype(), [&]<class T>(T) { x.as<T>()[i] = rounded<T>(value); });
}
}  // namespace

// The lowest number of both formats. It is finite: where a device has no other column, e = exp(l - m_local)
// stays a number, and exp(m_local - m) is 0.
constexpr float kLowest = -0x1.FEp127F;

void mask_columns(std::int64_t rows, std::int64_t vocab_local, std::int64_t first, Array logits) {
  for (std::int64_t row = 0; row < rows; ++row)
    for (std::int64_t column = std::max<std::int64_t>(first, 0); column < vocab_local; ++column)
      set_element(logits, row * vocab_local + column, kLowest);
}

void softmax_stats(std::int64_t rows, std::int64_t vocab_local, std::int64_t vocab_offset,
                   const std::int32_t* targets, Array logits, float* m_local, float* s_local, float* t_local,
                   float scale) {
  for (std::int64_t row = 0; row < rows; ++row) {
    const Array line = logits + row * vocab_local;
    const std::int64_t column = targets[row] - vocab_offset;
    const bool here = targets[row] >= 0 && column >= 0 && column < vocab_local;
    t_local[row] = here ? element(line, column) * scale : 0.0F;
    const float max = HWY_DYNAMIC_DISPATCH(MaxRow)(vocab_local, line);
    m_local[row] = max * scale;
    s_local[row] = HWY_DYNAMIC_DISPATCH(ExpRow)(vocab_local, max, scale, line);
  }
}

void rescale_sums(std::int64_t rows, const float* s_local, const float* m_local, const float* m,
                  float* s_adj) {
  for (std::int64_t row = 0; row < rows; ++row) s_adj[row] = s_local[row] * std::exp(m_local[row] - m[row]);
}

std::int64_t cross_entropy_loss(std::int64_t rows, const std::int32_t* targets, const float* m,
                                const float* s, const float* t, double scale, float* loss,
                                const float* weights) {
  double sum = 0;
  std::int64_t counted = 0;
  for (std::int64_t row = 0; row < rows; ++row) {
    if (targets[row] < 0) continue;
    const double nats = std::log(static_cast<double>(s[row])) + m[row] - t[row];
    sum += weights == nullptr ? nats : nats * weights[row];
    ++counted;
  }
  *loss = static_cast<float>(sum * scale);
  return counted;
}

void log_probs(std::int64_t rows, const std::int32_t* targets, const float* m, const float* s, const float* t,
               float* logp) {
  for (std::int64_t row = 0; row < rows; ++row)
    logp[row] =
        targets[row] < 0 ? 0.0F : static_cast<float>(t[row] - std::log(static_cast<double>(s[row])) - m[row]);
}

void cross_entropy_backward(std::int64_t rows, std::int64_t vocab_local, std::int64_t vocab_offset,
                            const std::int32_t* targets, const float* m_local, const float* m, const float* s,
                            float scale, Array e, const float* weights) {
  for (std::int64_t row = 0; row < rows; ++row) {
    const Array line = e + row * vocab_local;
    if (targets[row] < 0) {
      clear(vocab_local, line);
      continue;
    }
    const float at_target = weights == nullptr ? scale : scale * weights[row];
    const float factor = std::exp(m_local[row] - m[row]) / s[row] * at_target;
    const std::int64_t column = targets[row] - vocab_offset;
    const bool here = column >= 0 && column < vocab_local;
    const float target = here ? element(line, column) * factor : 0.0F;
    kernels::scale(vocab_local, factor, line);
    if (here) set_element(line, column, target - at_target);
  }
}

}  // namespace hyperrun::kernels
#endif  // HWY_ONCE

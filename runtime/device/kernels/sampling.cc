#include "runtime/device/kernels/sampling.h"

#include <algorithm>
#include <cmath>
#include <functional>

#include "runtime/device/kernels/random.h"

namespace hyperrun::kernels {
namespace {

std::int32_t most_likely(std::int64_t vocab, const float* logits) {
  return static_cast<std::int32_t>(std::max_element(logits, logits + vocab) - logits);
}

// Calls visit(token) for the k most likely tokens, in the order of their ids.
template <class Visit>
void for_top(std::int64_t vocab, const float* logits, std::int64_t k, float threshold, Visit visit) {
  // Tokens at the threshold are taken from the smallest id on until k are reached.
  std::int64_t ties = k - std::count_if(logits, logits + vocab, [=](float l) { return l > threshold; });
  for (std::int64_t i = 0; i < vocab; ++i) {
    if (logits[i] > threshold || (logits[i] == threshold && ties-- > 0)) visit(i);
  }
}

}  // namespace

std::int64_t sample_token_scratch_bytes(std::int64_t vocab) {
  return vocab * static_cast<std::int64_t>(sizeof(float));
}

std::int32_t sample_token(std::int64_t vocab, const float* logits, const Sampling& how, std::int64_t position,
                          std::int64_t row, void* scratch) {
  const std::int32_t best = most_likely(vocab, logits);
  if (how.temperature <= 0) return best;
  const std::int64_t k = how.top_k > 0 ? std::min(how.top_k, vocab) : vocab;
  auto* sorted = static_cast<float*>(scratch);
  std::copy_n(logits, vocab, sorted);
  std::nth_element(sorted, sorted + (k - 1), sorted + vocab, std::greater<>());
  const float threshold = sorted[k - 1];
  const auto weight = [&](std::int64_t i) {
    return std::exp((static_cast<double>(logits[i]) - logits[best]) / how.temperature);
  };
  double total = 0;
  for_top(vocab, logits, k, threshold, [&](std::int64_t i) { total += weight(i); });
  double left =
      total * uniform(how.seed, static_cast<std::uint64_t>(position), static_cast<std::uint64_t>(row));
  std::int32_t chosen = -1;
  for_top(vocab, logits, k, threshold, [&](std::int64_t i) {
    if (chosen >= 0) return;
    left -= weight(i);
    if (left < 0) chosen = static_cast<std::int32_t>(i);
  });
  return chosen >= 0 ? chosen : best;
}

}  // namespace hyperrun::kernels

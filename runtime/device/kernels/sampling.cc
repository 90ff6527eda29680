#include "runtime/device/kernels/sampling.h"

#include <algorithm>
#include <cmath>
#include <functional>

#include "runtime/device/kernels/cross_entropy.h"
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

// The k most likely tokens, which end up last, and the logit of the last of them. `sorted` holds all logits,
// in any order.
struct Cut {
  std::int64_t k;
  float threshold;
};
template <class Weight>
Cut cut(std::int64_t vocab, const Sampling& how, float* sorted, Weight weight) {
  const std::int64_t k = how.top_k > 0 ? std::min(how.top_k, vocab) : vocab;
  std::nth_element(sorted, sorted + (k - 1), sorted + vocab, std::greater<>());
  if (how.top_p >= 1) return {k, sorted[k - 1]};
  std::sort(sorted, sorted + k, std::greater<>());
  double total = 0, share = 0;
  for (std::int64_t i = 0; i < k; ++i) total += weight(sorted[i]);
  std::int64_t taken = 0;
  while (taken < k && share < how.top_p * total) share += weight(sorted[taken++]);
  taken = std::max<std::int64_t>(taken, 1);
  return {taken, sorted[taken - 1]};
}

}  // namespace

std::int64_t sample_token_scratch_bytes(std::int64_t vocab) {
  return vocab * static_cast<std::int64_t>(sizeof(float));
}

bool all_finite(std::int64_t vocab, const float* logits) {
  return std::all_of(logits, logits + vocab, [](float l) { return std::isfinite(l); });
}

std::int32_t sample_token(std::int64_t vocab, const float* logits, const Sampling& how, std::int64_t position,
                          std::int64_t id, void* scratch) {
  const std::int32_t best = most_likely(vocab, logits);
  if (how.temperature <= 0) return best;
  const auto weight = [&](float logit) {
    return std::exp((static_cast<double>(logit) - logits[best]) / how.temperature);
  };
  auto* sorted = static_cast<float*>(scratch);
  std::copy_n(logits, vocab, sorted);
  const auto [k, threshold] = cut(vocab, how, sorted, weight);
  double total = 0;
  for_top(vocab, logits, k, threshold, [&](std::int64_t i) { total += weight(logits[i]); });
  double left =
      total * uniform(how.seed, static_cast<std::uint64_t>(position), static_cast<std::uint64_t>(id));
  std::int32_t chosen = -1;
  for_top(vocab, logits, k, threshold, [&](std::int64_t i) {
    if (chosen >= 0) return;
    left -= weight(logits[i]);
    if (left < 0) chosen = static_cast<std::int32_t>(i);
  });
  return chosen >= 0 ? chosen : best;
}

// Computes it as scoring does (cross_entropy.h), so that equal logits have the same log probability.
float log_prob_of(std::int64_t vocab, const float* logits, std::int32_t token, double temperature,
                  float* scratch) {
  std::copy_n(logits, vocab, scratch);
  float m = 0, s = 0, t = 0, logp = 0;
  const float scale = temperature > 0 ? static_cast<float>(1 / temperature) : 1.0F;
  softmax_stats(1, vocab, 0, &token, scratch, &m, &s, &t, scale);
  log_probs(1, &token, &m, &s, &t, &logp);
  return logp;
}

}  // namespace hyperrun::kernels

#include "runtime/device/kernels/experts.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <numeric>
#include <utility>

#include "runtime/base/error.h"
#include "runtime/device/kernels/gemm.h"

namespace hyperrun::kernels {
namespace {

// What a token thinks of each expert.
void probabilities(const Routing& how, const float* logits, float* p) {
  if (how.sigmoid) {
    for (std::int64_t e = 0; e < how.experts; ++e) p[e] = 1 / (1 + std::exp(-logits[e]));
    return;
  }
  const float most = *std::max_element(logits, logits + how.experts);
  float sum = 0;
  for (std::int64_t e = 0; e < how.experts; ++e) sum += p[e] = std::exp(logits[e] - most);
  for (std::int64_t e = 0; e < how.experts; ++e) p[e] /= sum;
}

// The experts' first rows.
void offsets(const Routing& how, const std::int32_t* ids, std::int32_t* next) {
  std::fill_n(next, how.experts, 0);
  for (std::int64_t i = 0; i < how.tokens * how.choices; ++i) ++next[ids[i]];
  std::int32_t before = 0;
  for (std::int64_t e = 0; e < how.experts; ++e) before += std::exchange(next[e], before);
}

std::size_t bytes(std::int64_t floats) { return static_cast<std::size_t>(floats) * sizeof(float); }

float dot(std::int64_t n, const float* a, const float* b) {
  float sum[8] = {};
  std::int64_t i = 0;
  for (; i + 8 <= n; i += 8)
    for (int l = 0; l < 8; ++l) sum[l] += a[i + l] * b[i + l];
  float all = ((sum[0] + sum[1]) + (sum[2] + sum[3])) + ((sum[4] + sum[5]) + (sum[6] + sum[7]));
  for (; i < n; ++i) all += a[i] * b[i];
  return all;
}

}  // namespace

void route(const Routing& how, const float* logits, const float* bias, float* gates, std::int32_t* ids,
           float* load, float* row) {
  std::fill_n(load, how.experts, 0.0F);
  for (std::int64_t t = 0; t < how.tokens; ++t) {
    probabilities(how, logits + t * how.experts, row);
    float* gate = gates + t * how.choices;
    std::int32_t* id = ids + t * how.choices;
    float sum = 0;
    for (std::int64_t j = 0; j < how.choices; ++j) {
      std::int32_t best = -1;
      float best_score = 0;
      for (std::int32_t e = 0; e < how.experts; ++e) {
        const float score = row[e] + (bias == nullptr ? 0 : bias[e]);
        if ((best < 0 || score > best_score) && std::find(id, id + j, e) == id + j)
          best = e, best_score = score;
      }
      id[j] = best;
      load[best] += 1;
      sum += gate[j] = row[best];
    }
    const float factor = how.scale / (how.normalize ? sum : 1);
    for (std::int64_t j = 0; j < how.choices; ++j) gate[j] *= factor;
  }
}

void route_backward(const Routing& how, const float* logits, const std::int32_t* ids, const float* load,
                    const float* dgates, float* dlogits) {
  for (std::int64_t t = 0; t < how.tokens; ++t) {
    // p lies where the result will.
    float* p = dlogits + t * how.experts;
    probabilities(how, logits + t * how.experts, p);
    const std::int32_t* id = ids + t * how.choices;
    const float* dgate = dgates + t * how.choices;
    // Of g_j = scale p_j / s, s the sum of the chosen p or 1: dp_j = scale (dg_j - sum_i dg_i p_i / s) / s.
    // (p / s first: it is 1 for a single choice, whose gradient then is 0 and not what rounding leaves.)
    float s = how.normalize ? 0 : 1, mean = 0;
    for (std::int64_t j = 0; how.normalize && j < how.choices; ++j) s += p[id[j]];
    for (std::int64_t j = 0; how.normalize && j < how.choices; ++j) mean += dgate[j] * (p[id[j]] / s);
    const auto of_gates = [&](std::int32_t e) {
      const auto* at = std::find(id, id + how.choices, e);
      return at == id + how.choices ? 0 : how.scale * (dgate[at - id] - mean) / s;
    };
    float all = 1, aux_mean = 0;  // of the balance: p / all
    if (how.sigmoid) all = std::accumulate(p, p + how.experts, 0.0F);
    if (how.sigmoid)
      for (std::int64_t e = 0; e < how.experts; ++e) aux_mean += how.aux * load[e] * p[e] / all;
    const auto dp = [&](std::int32_t e) { return of_gates(e) + (how.aux * load[e] - aux_mean) / all; };
    if (how.sigmoid) {
      for (std::int32_t e = 0; e < how.experts; ++e) p[e] = dp(e) * p[e] * (1 - p[e]);
      continue;
    }
    float inner = 0;
    for (std::int32_t e = 0; e < how.experts; ++e) inner += p[e] * dp(e);
    for (std::int32_t e = 0; e < how.experts; ++e) p[e] *= dp(e) - inner;
  }
}

void dispatch(const Routing& how, std::int64_t width, const float* x, const std::int32_t* ids, float* rows,
              std::int32_t* counts, std::int32_t* next) {
  std::fill_n(counts, how.experts, 0);
  for (std::int64_t i = 0; i < how.tokens * how.choices; ++i) ++counts[ids[i]];
  offsets(how, ids, next);
  for (std::int64_t i = 0; i < how.tokens * how.choices; ++i)
    std::memcpy(rows + next[ids[i]]++ * width, x + i / how.choices * width, bytes(width));
}

void combine(const Routing& how, std::int64_t width, const float* rows, const std::int32_t* ids,
             const float* gates, float* y, std::int32_t* next) {
  offsets(how, ids, next);
  for (std::int64_t t = 0; t < how.tokens; ++t) {
    float* to = y + t * width;
    std::fill_n(to, width, 0.0F);
    for (std::int64_t j = 0; j < how.choices; ++j) {
      const float* row = rows + next[ids[t * how.choices + j]]++ * width;
      const float gate = gates == nullptr ? 1 : gates[t * how.choices + j];
      for (std::int64_t i = 0; i < width; ++i) to[i] += gate * row[i];
    }
  }
}

void combine_backward(const Routing& how, std::int64_t width, const float* dy, const float* rows,
                      const std::int32_t* ids, const float* gates, float* drows, float* dgates,
                      std::int32_t* next) {
  offsets(how, ids, next);
  for (std::int64_t i = 0; i < how.tokens * how.choices; ++i) {
    const std::int64_t row = next[ids[i]]++;
    const float* d = dy + i / how.choices * width;
    dgates[i] = dot(width, rows + row * width, d);
    for (std::int64_t w = 0; w < width; ++w) drows[row * width + w] = gates[i] * d[w];
  }
}

void regroup(std::int64_t sources, std::int64_t experts, std::int64_t width, const std::int32_t* counts,
             const float* in, float* out, bool back) {
  std::array<std::int64_t, kMostSources> next{};  // of each source, its first row that is not yet dealt with
  HR_CHECK(sources <= kMostSources);
  for (std::int64_t s = 1; s < sources; ++s)
    next[static_cast<std::size_t>(s)] =
        next[static_cast<std::size_t>(s) - 1] + total(experts, counts + (s - 1) * experts);
  std::int64_t by_expert = 0;
  for (std::int64_t e = 0; e < experts; ++e)
    for (std::int64_t s = 0; s < sources; ++s) {
      const std::int64_t n = counts[s * experts + e], by_source = next[static_cast<std::size_t>(s)];
      const std::int64_t from = back ? by_expert : by_source, to = back ? by_source : by_expert;
      std::memcpy(out + to * width, in + from * width, bytes(n * width));
      by_expert += n;
      next[static_cast<std::size_t>(s)] += n;
    }
}

void grouped_gemm(bool trans_b, std::int64_t groups, std::int64_t n, std::int64_t k,
                  const std::int32_t* counts, const float* rows, const float* b, bool accumulate,
                  float* out) {
  for (std::int64_t g = 0; g < groups; ++g) {
    const std::int64_t m = counts[g];
    gemm(Trans::kNo, Trans(trans_b), m, n, k, rows, k, b + g * n * k, trans_b ? k : n,
         accumulate ? 1.0F : 0.0F, out, n);
    rows += m * k;
    out += m * n;
  }
}

void grouped_outer(std::int64_t groups, std::int64_t m, std::int64_t n, const std::int32_t* counts,
                   const float* a, const float* b, bool accumulate, float* out) {
  for (std::int64_t g = 0; g < groups; ++g) {
    const std::int64_t rows = counts[g];
    gemm(Trans::kYes, Trans::kNo, m, n, rows, a, m, b, n, accumulate ? 1.0F : 0.0F, out + g * m * n, n);
    a += rows * m;
    b += rows * n;
  }
}

std::int64_t total(std::int64_t groups, const std::int32_t* counts) {
  return std::accumulate(counts, counts + groups, std::int64_t{0});
}

void balance(std::int64_t experts, float rate, const float* load, float* bias) {
  const float mean = std::accumulate(load, load + experts, 0.0F) / static_cast<float>(experts);
  for (std::int64_t e = 0; e < experts; ++e) bias[e] += load[e] > mean ? -rate : load[e] < mean ? rate : 0;
}

}  // namespace hyperrun::kernels

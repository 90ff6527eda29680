#include "runtime/device/kernels/experts.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

#include "runtime/base/error.h"
#include "runtime/device/kernels/elementwise.h"
#include "runtime/device/kernels/gemm.h"

namespace hyperrun::kernels {
namespace {

// A token's probability of each expert.
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

// Index of each expert's first row.
void offsets(const Routing& how, const std::int32_t* ids, std::int32_t* next) {
  std::fill_n(next, how.experts, 0);
  for (std::int64_t i = 0; i < how.tokens * how.choices; ++i)
    if (ids[i] >= 0) ++next[ids[i]];
  std::int32_t before = 0;
  for (std::int64_t e = 0; e < how.experts; ++e) before += std::exchange(next[e], before);
}

std::int32_t expert_of(std::int32_t id) { return id < 0 ? -1 - id : id; }

constexpr float kNotToBeChosen = -std::numeric_limits<float>::infinity();

// Keeps the experts of a token's best groups; the others cannot be chosen.
void keep_best_groups(const Routing& how, float* scores) {
  const std::int64_t size = how.experts / how.groups;
  const auto strength = [&](std::int64_t g) {
    float first = kNotToBeChosen, second = kNotToBeChosen;
    for (std::int64_t e = g * size; e < (g + 1) * size; ++e) {
      second = std::max(second, std::min(first, scores[e]));
      first = std::max(first, scores[e]);
    }
    return size > 1 && how.group_best > 1 ? first + second : first;
  };
  const auto weakest = [&] {
    std::int64_t found = -1;
    for (std::int64_t g = 0; g < how.groups; ++g)
      if (scores[g * size] != kNotToBeChosen && (found < 0 || strength(g) <= strength(found))) found = g;
    return found;
  };
  for (std::int64_t left = how.groups; left > how.group_choices; --left) {
    const std::int64_t g = weakest();
    std::fill_n(scores + g * size, size, kNotToBeChosen);
  }
}

template <Number T>
float dot(std::int64_t n, const T* a, const T* b) {
  float sum[8] = {};
  std::int64_t i = 0;
  for (; i + 8 <= n; i += 8)
    for (int l = 0; l < 8; ++l) sum[l] += to_float(a[i + l]) * to_float(b[i + l]);
  float all = ((sum[0] + sum[1]) + (sum[2] + sum[3])) + ((sum[4] + sum[5]) + (sum[6] + sum[7]));
  for (; i < n; ++i) all += to_float(a[i]) * to_float(b[i]);
  return all;
}

// Columns of a row that are summed in registers at a time.
constexpr std::int64_t kPiece = 64;

// y[width] of one token: the sum of its rows, the next one of each of its experts, times their gates.
template <Number T>
void combine_token(std::int64_t width, std::int64_t choices, const T* rows, const std::int32_t* ids,
                   const float* gates, const std::int32_t* next, T* y) {
  for (std::int64_t from = 0; from < width; from += kPiece) {
    const std::int64_t n = std::min(kPiece, width - from);
    std::array<float, kPiece> sum{};
    for (std::int64_t j = 0; j < choices; ++j) {
      if (ids[j] < 0) continue;
      const T* row = rows + next[ids[j]] * width + from;
      const float gate = gates == nullptr ? 1 : gates[j];
      for (std::int64_t i = 0; i < n; ++i) sum[static_cast<std::size_t>(i)] += gate * to_float(row[i]);
    }
    for (std::int64_t i = 0; i < n; ++i) y[from + i] = rounded<T>(sum[static_cast<std::size_t>(i)]);
  }
}

template <Number T>
void combine_row_backward(std::int64_t width, const T* dy, const T* row, float gate, T* drow, float* dgate) {
  *dgate = dot(width, row, dy);
  for (std::int64_t w = 0; w < width; ++w) drow[w] = rounded<T>(gate * to_float(dy[w]));
}

}  // namespace

void route(const Routing& how, const float* logits, const float* bias, float* gates, std::int32_t* ids,
           float* load, float* row) {
  std::fill_n(load, how.experts, 0.0F);
  for (std::int64_t t = 0; t < how.tokens; ++t) {
    probabilities(how, logits + t * how.experts, row);
    float* gate = gates + t * how.choices;
    std::int32_t* id = ids + t * how.choices;
    float* scores = row + how.experts;
    for (std::int64_t e = 0; e < how.experts; ++e) scores[e] = row[e] + (bias == nullptr ? 0 : bias[e]);
    if (how.groups > 1) keep_best_groups(how, scores);
    float sum = 0;
    for (std::int64_t j = 0; j < how.choices; ++j) {
      std::int32_t best = -1;
      for (std::int32_t e = 0; e < how.experts; ++e)
        if (scores[e] != kNotToBeChosen && (best < 0 || scores[e] > scores[best])) best = e;
      scores[best] = kNotToBeChosen;
      id[j] = best;
      load[best] += 1;
      sum += gate[j] = row[best];
    }
    const float factor = how.scale / (how.normalize ? sum : 1);
    for (std::int64_t j = 0; j < how.choices; ++j) gate[j] *= factor;
  }
}

void admit(const Routing& how, std::int64_t token, std::int64_t capacity, std::int32_t* taken, float* gates,
           std::int32_t* ids) {
  for (std::int64_t i = token * how.choices; i < (token + 1) * how.choices; ++i) {
    if (taken[ids[i]]++ < capacity) continue;
    ids[i] = -1 - ids[i];
    gates[i] = 0;
  }
}

void route_backward(const Routing& how, const float* logits, const std::int32_t* ids, const float* load,
                    const float* dgates, float* dlogits) {
  for (std::int64_t t = 0; t < how.tokens; ++t) {
    // p is stored in the place of the result.
    float* p = dlogits + t * how.experts;
    probabilities(how, logits + t * how.experts, p);
    const std::int32_t* id = ids + t * how.choices;
    const float* dgate = dgates + t * how.choices;
    // The derivative of g_j = scale p_j / s, with s the sum of the chosen p or 1, is dp_j = scale (dg_j -
    // sum_i dg_i p_i / s) / s. (p / s is computed first: it is 1 for a single choice, whose gradient is then
    // exactly 0.)
    float s = how.normalize ? 0 : 1, mean = 0;
    for (std::int64_t j = 0; how.normalize && j < how.choices; ++j) s += p[expert_of(id[j])];
    for (std::int64_t j = 0; how.normalize && j < how.choices; ++j)
      mean += dgate[j] * (p[expert_of(id[j])] / s);
    const auto of_gates = [&](std::int32_t e) {
      const auto* at = std::find_if(id, id + how.choices, [&](std::int32_t i) { return expert_of(i) == e; });
      return at == id + how.choices ? 0 : how.scale * (dgate[at - id] - mean) / s;
    };
    const auto pull = [&](std::int64_t e) {
      return how.aux == 0 ? 0 : how.aux * load[e];
    };                            // gradient of the balance
    float all = 1, aux_mean = 0;  // mean of p / all
    if (how.sigmoid) all = std::accumulate(p, p + how.experts, 0.0F);
    if (how.sigmoid)
      for (std::int64_t e = 0; e < how.experts; ++e) aux_mean += pull(e) * p[e] / all;
    const auto dp = [&](std::int32_t e) { return of_gates(e) + (pull(e) - aux_mean) / all; };
    if (how.sigmoid) {
      for (std::int32_t e = 0; e < how.experts; ++e) p[e] = dp(e) * p[e] * (1 - p[e]);
      continue;
    }
    float inner = 0;
    for (std::int32_t e = 0; e < how.experts; ++e) inner += p[e] * dp(e);
    for (std::int32_t e = 0; e < how.experts; ++e) p[e] *= dp(e) - inner;
  }
}

void dispatch(const Routing& how, std::int64_t width, ConstArray x, const std::int32_t* ids, Array rows,
              std::int32_t* counts, std::int32_t* next) {
  offsets(how, ids, next);
  std::fill_n(counts, how.experts, 0);
  for (std::int64_t i = 0; i < how.tokens * how.choices; ++i) {
    if (ids[i] < 0) continue;
    ++counts[ids[i]];
    copy(width, x + i / how.choices * width, rows + next[ids[i]]++ * width);
  }
}

void combine(const Routing& how, std::int64_t width, ConstArray rows, const std::int32_t* ids,
             const float* gates, Array y, std::int32_t* next) {
  offsets(how, ids, next);
  for (std::int64_t t = 0; t < how.tokens; ++t) {
    const std::int32_t* id = ids + t * how.choices;
    const float* gate = gates == nullptr ? nullptr : gates + t * how.choices;
    typed(y.dtype(), [&]<class T>(T) {
      combine_token(width, how.choices, rows.as<T>(), id, gate, next, y.as<T>() + t * width);
    });
    for (std::int64_t j = 0; j < how.choices; ++j)
      if (id[j] >= 0) ++next[id[j]];
  }
}

void combine_backward(const Routing& how, std::int64_t width, ConstArray dy, ConstArray rows,
                      const std::int32_t* ids, const float* gates, Array drows, float* dgates,
                      std::int32_t* next) {
  offsets(how, ids, next);
  typed(dy.dtype(), [&]<class T>(T) {
    for (std::int64_t i = 0; i < how.tokens * how.choices; ++i) {
      if (ids[i] < 0) {
        dgates[i] = 0;
        continue;
      }
      const std::int64_t row = next[ids[i]]++;
      combine_row_backward(width, dy.as<T>() + i / how.choices * width, rows.as<T>() + row * width, gates[i],
                           drows.as<T>() + row * width, dgates + i);
    }
  });
}

void regroup(const GroupRows& rows, std::int64_t width, ConstArray in, Array out, bool back) {
  TileRows tile(rows);
  std::int64_t by_expert = tile.first();
  for (std::int64_t e = 0; e < rows.groups; ++e, tile.next())
    for (std::int64_t s = 0; s < rows.sources; ++s) {
      const RowRange of_source = tile.of_source(s);
      const std::int64_t from = back ? by_expert : of_source.first, to = back ? of_source.first : by_expert;
      copy(of_source.count * width, in + from * width, out + to * width);
      by_expert += of_source.count;
    }
}

void grouped_gemm(bool trans_b, std::int64_t n, std::int64_t k, const GroupRows& rows, ConstArray x,
                  ConstArray b, bool accumulate, Array out) {
  TileRows tile(rows);
  std::int64_t first = tile.first();
  for (std::int64_t g = 0; g < rows.groups; ++g, tile.next()) {
    const std::int64_t m = tile.count();
    gemm(Trans::kNo, Trans(trans_b), m, n, k, x + first * k, k, b + g * n * k, trans_b ? k : n,
         accumulate ? 1.0F : 0.0F, out + first * n, n);
    first += m;
  }
}

void grouped_outer(std::int64_t m, std::int64_t n, const GroupRows& rows, ConstArray a, ConstArray b,
                   bool accumulate, Array out) {
  TileRows tile(rows);
  std::int64_t first = tile.first();
  for (std::int64_t g = 0; g < rows.groups; ++g, tile.next()) {
    const std::int64_t k = tile.count();
    if (k > 0 || !accumulate)
      gemm(Trans::kYes, Trans::kNo, m, n, k, a + first * m, m, b + first * n, n, accumulate ? 1.0F : 0.0F,
           out + g * m * n, n);
    first += k;
  }
}

void balance(std::int64_t experts, float rate, const float* load, float* bias) {
  const float mean = std::accumulate(load, load + experts, 0.0F) / static_cast<float>(experts);
  for (std::int64_t e = 0; e < experts; ++e) bias[e] += load[e] > mean ? -rate : load[e] < mean ? rate : 0;
}

}  // namespace hyperrun::kernels

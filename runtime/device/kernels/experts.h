// Mixture of experts: routing, and the rows that tokens send to the experts they have chosen.
//
// A routing gives each of `tokens` tokens `choices` different experts of `experts`. Its rows, one for each
// (token, choice), lie sorted by expert, within an expert in the order of the tokens. counts[e] of them are
// e's. A choice that was dropped has the number -1 - e for expert e, no row, and the gate 0. What is routed
// (logits, gates and their gradients) is float32; x, rows and y of a call have one format.
#pragma once

#include <cstdint>

#include "runtime/device/kernels/array.h"
#include "runtime/device/kernels/tile_rows.h"

namespace hyperrun::kernels {

// How logits become gates. With p = softmax or sigmoid of a token's logits, the `choices` experts of highest
// p (+ bias) are taken; gates are their p, divided by their sum when `normalize`, times `scale`. Of the
// load-balancing loss (Fedus et al. 2022) aux x sum_e load_e P_e, P_e the sum over tokens of p (of p over its
// sum where it is a sigmoid's), only the gradient exists: `aux` carries all constant factors. With several
// `groups` of experts a token chooses in `group_choices` of them: those whose two highest p (+ bias) add up
// to most.
struct Routing {
  std::int64_t tokens = 0, experts = 0, choices = 0;
  bool sigmoid = false, normalize = true;
  float scale = 1, aux = 0;
  std::int64_t groups = 1, group_choices = 1;
};

// logits [tokens, experts]; bias [experts] or null -> gates [tokens, choices], ids [tokens, choices] (highest
// first, of equals the lower number), load [experts]: how often each was chosen. `row`: scratch, [2,
// experts].
void route(const Routing& how, const float* logits, const float* bias, float* gates, std::int32_t* ids,
           float* load, float* row);

// Drops the choices of a token whose experts have `capacity` tokens already; `taken` [experts] counts on.
void admit(const Routing& how, std::int64_t token, std::int64_t capacity, std::int32_t* taken, float* gates,
           std::int32_t* ids);

// -> dlogits [tokens, experts]; load as the balance shall see it (of all devices); without aux it may be
// null.
void route_backward(const Routing& how, const float* logits, const std::int32_t* ids, const float* load,
                    const float* dgates, float* dlogits);

// x [tokens, width] -> rows [tokens * choices at most, width], counts [experts].
void dispatch(const Routing& how, std::int64_t width, ConstArray x, const std::int32_t* ids, Array rows,
              std::int32_t* counts, std::int32_t* next);
// y [tokens, width] = sum over choices of gate (1 when gates is null) times row. `next`: scratch, [experts].
void combine(const Routing& how, std::int64_t width, ConstArray rows, const std::int32_t* ids,
             const float* gates, Array y, std::int32_t* next);
// dy [tokens, width] -> drows = gate dy, dgates = row . dy (0 of what was dropped).
void combine_backward(const Routing& how, std::int64_t width, ConstArray dy, ConstArray rows,
                      const std::int32_t* ids, const float* gates, Array drows, float* dgates,
                      std::int32_t* next);

// Rows that came from rows.sources devices, of each sorted by expert, to the order of experts (of each the
// sources in order), or back. Of a tile: to its own rows of that order, see tile_rows.h.
void regroup(const GroupRows& rows, std::int64_t width, ConstArray in, Array out, bool back);

// For each group of rows: out [rows, n] (+)= x [rows, k] b^T with b [n, k] (b [k, n] when !trans_b).
void grouped_gemm(bool trans_b, std::int64_t n, std::int64_t k, const GroupRows& rows, ConstArray x,
                  ConstArray b, bool accumulate, Array out);
// For each group: out [m, n] (+)= a^T b, a [rows, m], b [rows, n].
void grouped_outer(std::int64_t m, std::int64_t n, const GroupRows& rows, ConstArray a, ConstArray b,
                   bool accumulate, Array out);

// DeepSeek-V3: of experts that were chosen more often than on average the bias falls by `rate`, of the others
// it rises.
void balance(std::int64_t experts, float rate, const float* load, float* bias);

}  // namespace hyperrun::kernels

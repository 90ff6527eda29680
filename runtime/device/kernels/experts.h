// Mixture of experts: routing, and the rows that tokens send to their experts.
//
// A routing gives each of `tokens` tokens `choices` different experts of `experts`. Its rows, one for each
// (token, choice), lie sorted by expert, and within an expert in the order of the tokens. counts[e] is the
// number of rows of expert e. A dropped choice of expert e has the number -1 - e, no row, and the gate 0.
// Routing data (logits, gates and their gradients) are float32; x, rows and y of a call have one format.
#pragma once

#include <cstdint>

#include "runtime/device/kernels/array.h"
#include "runtime/device/kernels/tile_rows.h"

namespace hyperrun::kernels {

// The rule that turns logits into gates. With p = softmax or sigmoid of a token's logits, the `choices`
// experts of highest p (+ bias) are taken. Gates are their p, divided by their sum if `normalize`, times
// `scale`. The load-balancing loss (Fedus et al. 2022) is aux x sum_e load_e P_e, with P_e the sum over
// tokens of p (for a sigmoid: of p over its sum). Only its gradient exists: `aux` carries all constant
// factors. With several `groups` of experts a token chooses within `group_choices` of them: those whose
// `group_best` highest p (+ bias), one or two, have the largest sum.
struct Routing {
  std::int64_t tokens = 0, experts = 0, choices = 0;
  bool sigmoid = false, normalize = true;
  float scale = 1, aux = 0;
  std::int64_t groups = 1, group_choices = 1, group_best = 2;
};

// Routes: logits [tokens, experts]; bias [experts] or null -> gates [tokens, choices], ids [tokens, choices]
// (highest first, among equals the lower number), load [experts]: the number of tokens of each expert. `row`:
// scratch, [2, experts].
void route(const Routing& how, const float* logits, const float* bias, float* gates, std::int32_t* ids,
           float* load, float* row);

// Drops the choices of a token whose experts have `capacity` tokens already; adds the others to `taken`
// [experts].
void admit(const Routing& how, std::int64_t token, std::int64_t capacity, std::int32_t* taken, float* gates,
           std::int32_t* ids);

// Writes dlogits [tokens, experts]. `load` is that of the balance (of all devices); without aux it may be
// null.
void route_backward(const Routing& how, const float* logits, const std::int32_t* ids, const float* load,
                    const float* dgates, float* dlogits);

// Dispatches: x [tokens, width] -> rows [tokens * choices at most, width], counts [experts].
void dispatch(const Routing& how, std::int64_t width, ConstArray x, const std::int32_t* ids, Array rows,
              std::int32_t* counts, std::int32_t* next);
// Combines: y [tokens, width] = sum over choices of gate (1 if gates is null) times row. `next`: scratch,
// [experts].
void combine(const Routing& how, std::int64_t width, ConstArray rows, const std::int32_t* ids,
             const float* gates, Array y, std::int32_t* next);
// Writes drows = gate dy and dgates = row . dy (0 for dropped choices) from dy [tokens, width].
void combine_backward(const Routing& how, std::int64_t width, ConstArray dy, ConstArray rows,
                      const std::int32_t* ids, const float* gates, Array drows, float* dgates,
                      std::int32_t* next);

// Sorts rows that came from rows.sources devices, each part sorted by expert, by expert and then source; or
// back. For a tile: to its own rows of that order, see tile_rows.h.
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

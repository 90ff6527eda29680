// Merges attention to keys that several devices hold (Liu et al. 2023). With lse the log-sum-exp of a part's
// scores, o = sum(exp(lse) o) / sum(exp(lse)) over the parts, in their order.
//
//   parts float32[parts, batch, seq, heads, width]   lse [parts, batch, heads, seq]
//   o [batch, seq, heads, width]
//
// A row for which no part has seen a key, whose lse are all -inf, is 0.
#pragma once

#include <cstdint>

#include "runtime/device/kernels/array.h"

namespace hyperrun::kernels {

struct PartsShape {
  std::int64_t parts = 0, batch = 0, seq = 0, heads = 0, width = 0;
};
void merge_parts(const PartsShape& shape, const float* parts, const float* lse, Array o);

}  // namespace hyperrun::kernels

// The pairs of a query and a key that attention computes, from which its work follows.
#pragma once

#include <algorithm>
#include <cstdint>

#include "runtime/ir/mesh.h"
#include "runtime/ir/zigzag.h"

namespace hyperrun {

// Twice the pairs of `queries` positions, the last ones of the first `end`, with the keys up to their own, or
// the last `window` of them (0: all). A query counts half of its own key, so that a causal square is half of
// one.
inline std::int64_t double_pairs(std::int64_t end, std::int64_t queries, std::int64_t window) {
  const auto up_to = [&](std::int64_t n) {
    return window == 0 || n <= window ? n * n : window * window + (n - window) * (2 * window - 1);
  };
  return up_to(end) - up_to(end - queries);
}

// Twice the pairs of the queries at [queries, queries + n) with the keys at [keys, keys + n), two stretches
// that are apart or the same.
inline std::int64_t double_pairs_of_stretches(std::int64_t queries, std::int64_t keys, std::int64_t n,
                                              std::int64_t window) {
  if (queries == keys) return double_pairs(n, n, window);
  if (queries < keys) return 0;
  // Query i sees the last `seen` - i of the keys: all of them before `whole`, none from `end` on.
  const std::int64_t seen = keys + n + window - queries - 1;
  const std::int64_t whole = std::clamp<std::int64_t>(seen - n + 1, 0, n),
                     end = std::clamp<std::int64_t>(seen, whole, n);
  return 2 * whole * n + (end - whole) * (2 * seen - whole - end + 1);
}

// Twice the pairs of one head and sequence in step `step` of a ring with a window: the mean of all devices,
// whose parts have `seq` positions in zigzag order.
inline std::int64_t double_pairs_of_step(std::int64_t devices, std::int64_t step, std::int64_t seq,
                                         std::int64_t window) {
  const Zigzag order{devices, seq / 2};
  std::int64_t sum = 0;
  for (std::int64_t d = 0; d < devices; ++d)
    for (const std::int64_t half : {std::int64_t{0}, seq / 2})
      for (const std::int64_t of_keys : {std::int64_t{0}, seq / 2})
        sum += double_pairs_of_stretches(order.position(d * seq + half),
                                         order.position((d + devices - step) % devices * seq + of_keys),
                                         seq / 2, window);
  return sum / devices;
}

// Twice the pairs that an Attention, an AttentionStep or their gradient computes for each head and sequence.
std::int64_t double_pairs_of(const auto& o, const Mesh& mesh) {
  std::int64_t step = 0;
  if constexpr (requires { o.step; }) step = o.step;
  if (o.window > 0 && !o.ring.empty()) return double_pairs_of_step(mesh.size(o.ring), step, o.seq, o.window);
  return o.causal ? double_pairs(o.seq, o.seq, o.window) : 2 * o.seq * o.seq;
}

}  // namespace hyperrun

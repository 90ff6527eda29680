// Attention of a growing sequence. The queries of this pass see cached keys and values in pages, and those of
// this pass, which are added to the pages.
//
//   q [seq, heads, head_dim]   k, v [seq, kv_heads, .]   o [seq, heads, value_dim]
//   keys, values [pages, page, kv_heads, .]
//
// If the pass brings fewer than `seq` tokens, the other rows of o are 0. The cache is read tile by tile along
// the sequence, wherever its pages lie, so the result does not depend on their places.
#pragma once

#include <cstdint>

#include "runtime/device/kernels/array.h"

namespace hyperrun::kernels {

struct CachedShape {
  std::int64_t seq = 0, heads = 0, kv_heads = 0, head_dim = 0, value_dim = 0;
  std::int64_t page = 0;  // positions of a page, or of this device's part of it
  bool rounded = false;   // arrays are bfloat16
  std::int64_t parts = 1, part = 0;
  std::int64_t window = 0;  // a query sees the last `window` positions up to its own; 0: all
  float scale = 0;          // 0: 1 / sqrt(head_dim)
};
CachedShape cached_shape_of(const auto& op, bool rounded) {
  return {.seq = op.seq,
          .heads = op.kv_heads * op.group,
          .kv_heads = op.kv_heads,
          .head_dim = op.head_dim,
          .value_dim = op.value_dim,
          .page = op.page,
          .rounded = rounded,
          .parts = op.parts,
          .window = op.window,
          .scale = static_cast<float>(op.scale)};
}

std::int64_t cached_attention_scratch_bytes(const CachedShape& shape);

// Positions [start, start + count) are new; position p lies in page pages[p / page].
struct CachedSequence {
  std::int64_t start = 0, count = 0;
  const std::int32_t* pages = nullptr;
};
void cached_attention(const CachedShape& shape, const CachedSequence& sequence, ConstArray q, ConstArray k,
                      ConstArray v, Array keys, Array values, Array o, void* scratch);

// Attention over this device's positions, if several devices each hold a part of every page. merge_parts.h
// puts the results together. Rows that see no position of this device, or bring no token, have 0 in o and
// -inf in lse.
//
//   o float32[seq, heads, value_dim]   lse [heads, seq]
void cached_attention_part(const CachedShape& shape, const CachedSequence& sequence, ConstArray q,
                           ConstArray k, ConstArray v, Array keys, Array values, float* o, float* lse,
                           void* scratch);

}  // namespace hyperrun::kernels

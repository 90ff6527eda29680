// Attention of few queries to keys and values in pages. Each key is read once in place, and nothing is packed
// for products of many rows.
#pragma once

#include <cstdint>

#include "runtime/device/kernels/cached_attention.h"

namespace hyperrun::kernels {

std::int64_t paged_rows_scratch_bytes(const CachedShape& shape);

// Query i of the `count` new ones sees positions [0, start + i], or the last of them that its window has. All
// lie in pages. Positions are taken in their order, so the result does not depend on the places of the pages.
// `scratch` is aligned to 64 bytes.
void paged_rows(const CachedShape& shape, const CachedSequence& sequence, ConstArray q, ConstArray keys,
                ConstArray values, Array o, void* scratch);

// Attention over this device's positions: o is float32; lse [heads, seq].
void paged_rows_part(const CachedShape& shape, const CachedSequence& sequence, ConstArray q, ConstArray keys,
                     ConstArray values, float* o, float* lse, void* scratch);

}  // namespace hyperrun::kernels

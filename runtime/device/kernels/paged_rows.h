// Attention of few queries against keys and values that lie in pages: each key is read once where it lies,
// and nothing is packed for products of many rows.
#pragma once

#include <cstdint>

#include "runtime/device/kernels/cached_attention.h"

namespace hyperrun::kernels {

std::int64_t paged_rows_scratch_bytes(const CachedShape& shape);

// Query i of the `count` that are new sees positions [0, start + i], all of which lie in pages. Positions are
// taken in their order, so a result does not depend on where the pages are. `scratch` is aligned to 64 bytes.
void paged_rows(const CachedShape& shape, const CachedSequence& sequence, ConstArray q, ConstArray keys,
                ConstArray values, Array o, void* scratch);

// The same of the positions that are held: o is float32; lse [heads, seq].
void paged_rows_part(const CachedShape& shape, const CachedSequence& sequence, ConstArray q, ConstArray keys,
                     ConstArray values, float* o, float* lse, void* scratch);

}  // namespace hyperrun::kernels

// Elementwise reduction of several vectors into one or more: the arithmetic of every collective. Float32 and
// bfloat16 accumulate in float32, in the order of the sources, and round once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "collectives/types.h"

namespace hyperrun {

inline constexpr int kMaxSources = 512;

// Sets every target[i] = ((sources[0][i] op sources[1][i]) op ...), i < n. A target may be one of the
// sources; otherwise they are disjoint. The result has the same bits on every instruction set. A sum with NaN
// is NaN; a maximum takes NaN or the other value, as the machine does.
void reduce(DType dtype, ReduceOp op, std::span<const std::byte* const> sources,
            std::span<std::byte* const> targets, std::int64_t n);

}  // namespace hyperrun

// Turns an offload plan into instructions.
#pragma once

#include "runtime/offload/offload_plan.h"
#include "runtime/offload/uses.h"

namespace hyperrun {

// Rewrites a Program without offsets and events. Evictions split the live range of a buffer; each part
// becomes a buffer of its own: "x", "x@2", "x@3", or "w@1", "w@2" for offloaded state.
//   - A Store ends a part whose bytes have changed and are needed later.
//   - A Prefetch, or a copy of the instruction that made the bytes, begins a part that is read.
//   - Offloaded state moves to `tier`.
// Returns the new index of each original instruction.
std::vector<std::int32_t> apply(Program& program, const std::vector<BufferUses>& uses,
                                const OffloadPlan& plan, Tier tier);

}  // namespace hyperrun

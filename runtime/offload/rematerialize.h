// Which buffers can be computed again after an eviction instead of being stored and fetched.
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/ir/program.h"
#include "runtime/offload/uses.h"

namespace hyperrun {

// The instruction that wrote all bytes which `buffer` holds after its access number `after`. -1: no such
// instruction, or running it again would be wrong: it communicates, accumulates, or writes other state. The
// caller checks that its inputs are still unchanged.
std::int32_t producer_of(const Program& program, const std::vector<BufferUses>& uses, std::int32_t buffer,
                         std::int32_t after);

// The first instruction that overwrites an input of `producer`; the number of instructions if none does.
// `producer` may be run again anywhere before it.
std::int32_t inputs_unchanged_until(const Program& program, const std::vector<BufferUses>& uses,
                                    std::int32_t producer);

}  // namespace hyperrun

// What may be made again, by the instruction that made it, and until when.
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/ir/program.h"
#include "runtime/offload/uses.h"

namespace hyperrun {

// The instruction that made all of a buffer as it is behind its access `after`, if it computes and changes
// nothing else that lasts; -1: none. Whether what it reads is still there is the caller's to see.
std::int32_t maker_of(const Program& program, const std::vector<BufferUses>& uses, std::int32_t buffer,
                      std::int32_t after);

// The last instruction before which what `maker` reads is as it was when it read that; the number of
// instructions where it is never changed.
std::int32_t unchanged_until(const Program& program, const std::vector<BufferUses>& uses, std::int32_t maker);

}  // namespace hyperrun

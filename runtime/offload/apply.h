// Absences become instructions.
#pragma once

#include "runtime/offload/uses.h"

namespace hyperrun {

// Rewrites a Program whose buffers have no places yet. Each stay in HBM of a buffer with absences is a buffer
// of its own. A Store is where a stay that has changed the bytes ends and they are needed again, a Prefetch
// where one begins that needs them, or the instruction that made them once more. Homes become state of
// `tier`. Returns where the Program's own instructions are now.
std::vector<std::int32_t> apply(Program& program, const std::vector<BufferUses>& uses,
                                const Absences& absences, Tier tier);

}  // namespace hyperrun

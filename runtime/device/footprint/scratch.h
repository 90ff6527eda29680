// Scratch memory of the emulated device's kernels. The compiler sees this, and no kernel.
#pragma once

#include "runtime/ir/program.h"

namespace hyperrun {

// Bytes of scratch of the kernel that runs `instr`, which has its operands; 0 for most.
Bytes scratch_bytes(const Instr& instr);

}  // namespace hyperrun

#pragma once

#include "runtime/ir/program.h"

namespace hyperrun {

// The bytes of scratch that the emulated device's kernel needs for `instr`, whose operands are set; 0 for
// most.
Bytes scratch_bytes(const Instr& instr);

}  // namespace hyperrun

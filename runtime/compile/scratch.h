#pragma once

#include "runtime/ir/program.h"

namespace hyperrun {

// The scratch that the emulated device's kernel needs for `instr`, which has its operands; 0 for most.
Bytes scratch_bytes(const Instr& instr);

}  // namespace hyperrun

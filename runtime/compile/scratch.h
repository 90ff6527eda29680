#pragma once

#include "runtime/ir/program.h"

namespace hyperrun {

// The scratch that the emulated device's kernel needs for `op`; 0 for most.
Bytes scratch_bytes(const InstrOp& op);

}  // namespace hyperrun

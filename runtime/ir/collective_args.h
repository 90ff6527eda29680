#pragma once

#include "collectives/types.h"
#include "runtime/ir/instr.h"

namespace hyperrun {

// The collective as the library that runs and costs it sees it, in a group of p; buffers are left out.
CollectiveArgs collective_args(const instr::Collective& c, int p);

}  // namespace hyperrun

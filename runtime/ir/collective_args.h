#pragma once

#include "collectives/types.h"
#include "runtime/ir/instr.h"

namespace hyperrun {

// The arguments of collective `c` in a group of p, as collectives/ runs and costs it; buffers are left out.
// The sizes of an all-to-all-v are known only when it runs: here it is an all-to-all with equal parts.
CollectiveArgs collective_args(const instr::Collective& c, int p);

}  // namespace hyperrun

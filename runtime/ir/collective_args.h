#pragma once

#include "collectives/types.h"
#include "runtime/ir/instr.h"

namespace hyperrun {

// What an all-to-all-v moves is known when it runs; here it stands as an all-to-all of as much to each.
// The collective as the library that runs and costs it sees it, in a group of p; buffers are left out.
CollectiveArgs collective_args(const instr::Collective& c, int p);

}  // namespace hyperrun

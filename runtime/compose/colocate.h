// Offsets for several plans on the same devices. The states of all plans are disjoint. Their temporary
// buffers share the memory above, because the plans take turns:
//
//   | state of A | state of B |  temporary buffers of A or B  |
//   0                         end of state                 peak
#pragma once

#include <vector>

#include "runtime/ir/program.h"

namespace hyperrun {

struct PlanOnRanks {
  Plan* plan;
  std::vector<int> ranks;  // the plan's device d is rank ranks[d]
};

// Shifts every buffer to its final offset. Returns, by rank, the end of all state there. `ranks` is the
// number of ranks of the job.
std::vector<TierBytes> colocate(const std::vector<PlanOnRanks>& plans, int ranks);

}  // namespace hyperrun

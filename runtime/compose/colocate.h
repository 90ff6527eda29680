// Several plans on the same devices: what each keeps lies beside what the others keep, and what each computes
// lies above all of it, where they take turns.
#pragma once

#include <vector>

#include "runtime/ir/program.h"

namespace hyperrun {

struct PlanOnRanks {
  Plan* plan;
  std::vector<int> ranks;  // the plan's device d is rank ranks[d]
};

// Moves every buffer to its place. Returns by rank the end of all state there. `ranks`: of all plans
// together.
std::vector<TierBytes> colocate(const std::vector<PlanOnRanks>& plans, int ranks);

}  // namespace hyperrun

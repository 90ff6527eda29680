// Chooses the offload plans of all roles of a job together: they share the pool and wait for each other.
#pragma once

#include <vector>

#include "runtime/compile/compile.h"
#include "runtime/compile/place.h"

namespace hyperrun {

struct MemoryPlan {
  Moves moves;
  std::vector<StatePlaces> places;  // by role
};

// Adds transfers by the job's policy, offsets and events to the plan's Programs, which have none.
//
// Feasibility is monotone: a job that fits in some HBM or pool budget also fits in every larger one. A job
// that does not fit is planned for the least HBM that is known to be enough with its pool; if HBM is not
// short, for the least pool. check_fits() refuses it then.
//
// If not everything fits unmoved, updates of weights may come early (early_updates.h), under any policy,
// where the step then fits or is shorter.
//
// `like`: use these decisions, made for Programs with as many buffers. Then `refusals` do not apply.
MemoryPlan choose_memory_plan(Plan& plan, const Job& job, const Moves* like, const Refusals& refusals);

}  // namespace hyperrun

// What lies beyond HBM is settled for all roles of a job together: they share the pool, and wait for each
// other.
#pragma once

#include <vector>

#include "runtime/compile/compile.h"
#include "runtime/compile/place.h"

namespace hyperrun {

struct SettledPlan {
  Moves moves;
  std::vector<StatePlaces> places;  // by role
};

// The plan's Programs have neither places nor events, and get them, with the transfers that the job's policy
// decides. What fits at some budget of HBM fits at every larger one, and so of the pool. What does not fit is
// planned for the least HBM that is known to be enough with the job's pool; or, where HBM would be enough,
// for the least of the pool (check_fits refuses it). Where not all has room as it is, updates of weights may
// come early (early_updates.h), if the step then fits or is shorter, whatever the policy. `like`: what was
// decided for Programs with as many buffers; then nothing is refused.
SettledPlan settle(Plan& plan, const Job& job, const Moves* like, const Refusals& refusals);

}  // namespace hyperrun

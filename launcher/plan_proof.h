// hyperrun plan JOB --prove N: plans of a small world of the job (runtime/plan/proof.h) are executed to scale
// on this host.
#pragma once

#include "launcher/commands.h"
#include "runtime/ir/job.h"
#include "runtime/plan/space.h"
#include "runtime/report/plan/proof.h"

namespace hyperrun {

// Throws what a run throws; a signal ends the process once the run is cleaned up.
Proof prove(const Job& job, const Space& space, const PlanArguments& arguments);

}  // namespace hyperrun

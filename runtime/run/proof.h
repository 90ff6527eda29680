// hyperrun plan JOB --prove N: executes plans for a small world of the job (runtime/plan/proof.h) to scale on
// this host, and compares their measured times with the planner's.
#pragma once

#include <cstdint>
#include <string>

#include "runtime/ir/job.h"
#include "runtime/plan/space.h"
#include "runtime/report/plan/proof.h"

namespace hyperrun {

struct ProofOptions {
  std::string job;         // the job's file, shown as the ranks' argument in a list of processes
  std::int32_t ranks = 2;  // devices of the small world
  std::int32_t plans = 6;  // number of plans to execute
};

// Throws the errors of a run. A signal ends the process after the run has been cleaned up.
Proof prove(const Job& job, const Space& space, const ProofOptions& options);

}  // namespace hyperrun

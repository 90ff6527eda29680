// hyperrun plan JOB --prove N: plans of a small world of the job (runtime/plan/proof.h) are executed to scale
// on this host.
#pragma once

#include <cstdint>
#include <string>

#include "runtime/ir/job.h"
#include "runtime/plan/space.h"
#include "runtime/report/plan/proof.h"

namespace hyperrun {

struct ProofOptions {
  std::string job;         // its file, as ranks are called in a list of processes
  std::int32_t ranks = 2;  // of the small world
  std::int32_t plans = 6;  // that are executed
};

// Throws what a run throws; a signal ends the process once the run is cleaned up.
Proof prove(const Job& job, const Space& space, const ProofOptions& options);

}  // namespace hyperrun

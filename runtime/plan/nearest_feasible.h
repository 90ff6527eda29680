// The nearest machine on which some strategy fits, if none fits the job's: more devices, more HBM or a larger
// pool.
#pragma once

#include <cstdint>
#include <optional>

#include "runtime/ir/job.h"
#include "runtime/plan/search.h"

namespace hyperrun {

// A changed supernode for which a strategy was found, compiled and simulated.
struct ResourceRemedy {
  SupernodeSpec supernode;
  SimulatedCandidate leader;  // the best strategy there
};

struct NearestFeasible {
  std::optional<ResourceRemedy> more_devices;  // a power of two times the job's devices
  // The least that was found to suffice.
  std::optional<ResourceRemedy> more_hbm, more_pool;
  std::int32_t most_devices = 0;  // the most devices tried
};

struct NearestFeasibleOptions {
  const Space* space = &spaces().front();
  Progress progress;
};

// `failed`: the search of the job, which found nothing although layouts divide.
NearestFeasible nearest_feasible(const Job& base, const Search& failed,
                                 const NearestFeasibleOptions& options);

}  // namespace hyperrun

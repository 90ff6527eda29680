// Where no strategy does: what is in the way, and the nearest machine on which one does.
#pragma once

#include <cstdint>
#include <optional>

#include "runtime/ir/job.h"
#include "runtime/plan/search.h"

namespace hyperrun {

// A change to the job's supernode with which a strategy was found, compiled and simulated.
struct Remedy {
  SupernodeSpec supernode;
  Leader leader;  // the best there
};

struct Feasible {
  std::optional<Remedy> more_devices;  // twice as many, or four times, ...
  // As much as what needs least does when it is compiled, of those that need least by their bounds.
  std::optional<Remedy> more_hbm, more_pool;
  std::int32_t most_devices = 0;  // that were tried
};

struct FeasibleOptions {
  const Space* space = &spaces().front();
  Progress progress;
};

// `failed`: the search of the job, which has found nothing though layouts divide.
Feasible nearest_feasible(const Job& base, const Search& failed, const FeasibleOptions& options);

}  // namespace hyperrun

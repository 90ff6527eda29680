// What a step takes against what it takes it with: the front of its time, of HBM a device and of the number
// of devices. The batch stays, so that times compare.
//
// For each number of devices the best strategy is searched (search.h) under one budget of HBM after the
// other, from the job's down to an eighth of what the fastest takes. A point holds what the searches certify:
// of so many devices, no strategy that takes no more HBM than it is faster by more than `gap`. Between two
// budgets there may be strategies that are not told: they need more than the one and are no faster than the
// best of the other.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/base/units.h"
#include "runtime/ir/job.h"
#include "runtime/plan/search.h"

namespace hyperrun {

struct FrontPoint {
  std::int32_t devices = 0;
  Bytes budget{};  // of HBM, that it was searched under
  Leader leader;   // simulated: its time, and the HBM that it takes
  double gap = 0;  // infinite: a step of its searches was shorter than its bound
};

// A number of devices that was looked at.
struct FrontCount {
  std::int32_t devices = 0;
  bool fits = false, divides = true;  // some strategy, some layout
  bool is_meant = true;               // some layout is as the space's constraints want it
  Bytes needs{};                      // where nothing fits: at least so much HBM a device; 0: not known
};

struct Front {
  std::vector<FrontPoint> points;  // by number of devices, the fastest first; none is dominated
  std::vector<FrontCount> counts;
};

struct FrontOptions {
  const Space* space = &spaces().front();
  std::int32_t leaders = 2;           // that are simulated of each search
  std::vector<std::int32_t> devices;  // numbers of them; empty: a quarter, a half, once, twice the job's
  Progress progress;
};

// Throws kBadValue, at --pareto-devices, where the job's machine has not so many.
void require_devices(const Job& base, const std::vector<std::int32_t>& counts);

// `known`: the search of the job as it is, in the same space. Throws kBadValue where the machine has not so
// many devices.
Front pareto_front(const Job& base, const Search& known, const FrontOptions& options);

// No more of anything, and less of something.
bool dominates(const FrontPoint& a, const FrontPoint& b);

}  // namespace hyperrun

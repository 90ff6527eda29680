// The Pareto front of step time, HBM of a device and number of devices, for a fixed batch.
//
// For each number of devices the best strategy is searched (search.h) under several budgets of HBM, from the
// job's down to an eighth of what the fastest takes. Each point is certified: with as many devices and no
// more HBM, no strategy is faster by more than `gap`. Strategies between two budgets may be missing: they
// need more than the smaller budget and are no faster than the best of the larger.
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
  Bytes budget{};             // HBM budget of its search
  SimulatedCandidate leader;  // simulated time and HBM
  double gap = 0;             // infinite if a step was shorter than its bound
};

// A number of devices that was searched.
struct FrontCount {
  std::int32_t devices = 0;
  bool fits = false, divides = true;  // some strategy fits; some layout divides
  bool meets_constraints = true;      // some dividing layout meets the constraints
  Bytes needs{};                      // if nothing fits: least HBM of a device; 0: not known
};

struct Front {
  std::vector<FrontPoint> points;  // by devices, then the fastest first; none dominated
  std::vector<FrontCount> counts;
};

struct FrontOptions {
  const Space* space = &spaces().front();
  std::int32_t leaders = 2;           // simulated in each search
  std::vector<std::int32_t> devices;  // empty: a quarter, half, once and twice the job's
  Progress progress;
};

// Throws kBadValue, at --pareto-devices, if the machine has fewer devices.
void require_devices(const Job& base, const std::vector<std::int32_t>& counts);

// `known`: the search of the job as it is, in the same space. Throws kBadValue if the machine has fewer
// devices.
Front pareto_front(const Job& base, const Search& known, const FrontOptions& options);

// True if `a` has no more of anything and less of something.
bool dominates(const FrontPoint& a, const FrontPoint& b);

}  // namespace hyperrun

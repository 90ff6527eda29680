// The first round of a search: every strategy gets lower bounds of its step time and memory. Strategies that
// cannot fit are dropped.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <span>
#include <vector>

#include "runtime/ir/job.h"
#include "runtime/plan/closed_form.h"
#include "runtime/plan/dimensions.h"
#include "runtime/plan/space.h"
#include "runtime/plan/strategy.h"
#include "runtime/plan/structure_cache.h"

namespace hyperrun {

// A strategy that may fit.
struct Bounded {
  double bound = 0;  // ns
  Strategy strategy;
  double bound_with_extra = 0;  // with any number of extra recomputing layers, ns; no more than `bound`
};
// Orders by bound. Ties are broken by the strategy's fields, so a search has the same result on any number of
// cores.
bool lower(const Bounded& a, const Bounded& b);

// HBM that a strategy needs.
struct MemoryNeed {
  Bytes least{}, expected{};  // by the lower bound; by the forecast
  Strategy strategy;
  double bound = 0, bound_with_extra = 0;  // ns, as in Bounded
};

// The strategies with the least bounds, kMost of them.
class LowestBounds {
 public:
  void add(const Bounded& b);
  void add(LowestBounds&& other);
  // Records the bound of a dropped strategy.
  void drop(double bound_with_extra) { least_dropped_ = std::min(least_dropped_, bound_with_extra); }
  // Drops what is beyond the kMost best. Call it once after the last add(); add() calls it now and then.
  void trim();

  // Bound above which strategies are dropped, ns, as of the last trim().
  double cutoff() const { return cutoff_; }
  const std::vector<Bounded>& list() const { return list_; }
  double least_dropped() const { return least_dropped_; }  // least bound of those dropped, ns

  static constexpr std::size_t kMost = 200'000;

 private:
  std::vector<Bounded> list_;
  double cutoff_ = std::numeric_limits<double>::infinity();
  double least_dropped_ = std::numeric_limits<double>::infinity();
};

struct Bounds {
  // Strategies that may fit HBM, and those that may fit only with offloading. The latter have too low
  // forecasts and are many, so they get a list of their own.
  LowestBounds kept, kept_offloaded;
  double least = std::numeric_limits<double>::infinity();  // least bound of all, ns
  std::int64_t strategies = 0, do_not_divide = 0, do_not_fit = 0, bounded = 0;
  Alternatives alternatives;
  // Strategies that need least HBM by their forecasts, in that order; one of those that differ only in
  // stages.
  std::vector<MemoryNeed> smallest;
  // Bytes of HBM that any strategy needs.
  std::int64_t least_memory = std::numeric_limits<std::int64_t>::max();

  static constexpr std::size_t kMostSmallest = 64;
  void add_smallest(const MemoryNeed& needs);
  void add(Bounds&& other);

  // All kept strategies by bound; the least bound of the others, ns.
  std::vector<Bounded> lowest() const;
  double least_dropped() const { return std::min(kept.least_dropped(), kept_offloaded.least_dropped()); }
};

// Bounds all shapes on all cores. The result does not depend on their number. `on_progress` gets the number
// of strategies done, now and then, from one thread at a time. `structures` gets the structures of groups
// that may be kept.
Bounds bound_all(const Job& job, const Space& space, std::span<const Strategy> shapes,
                 const std::function<void(std::int64_t)>& on_progress, StructureCache* structures = nullptr);

// Pool bytes for each device on average; one device may take more, another less.
Bytes pool_share(const Job& job, const Space& space);

}  // namespace hyperrun

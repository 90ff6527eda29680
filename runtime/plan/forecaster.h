// The second round of a search: the forecaster estimates time and memory of strategies by the closed form. A
// strategy whose forecast does not fit is also tried with the number of extra recomputing layers that makes
// it fit.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "runtime/ir/job.h"
#include "runtime/plan/bounding.h"
#include "runtime/plan/closed_form.h"
#include "runtime/plan/layer_profile_cache.h"
#include "runtime/plan/space.h"
#include "runtime/plan/strategy.h"
#include "runtime/plan/structure_cache.h"

namespace hyperrun {

struct Forecasted {
  Forecast forecast;
  Strategy strategy;
  std::size_t turn = 0;  // the turn of leaders (candidates.h) from which on it may be simulated
};

// Forecast over capacity with offloading, of fixed bytes in HBM or of mean bytes in HBM and pool, whichever
// is larger. `share`: pool bytes for each device.
double overcommit(const Forecast& f, std::int64_t hbm, std::int64_t share);

// Forecasts of a bounded strategy.
struct Forecasts {
  // Lower bounds, ns: in any axis order, in the strategy's own, and in any order with extra recomputing
  // layers. A strategy without a forecast may get a weak bound for the last, if another one bounds the result
  // anyway.
  double bound = 0, bound_in_own_order = 0, bound_with_extra = 0;
  // `with_extra` has the fewest extra recomputing layers that fit by the forecast. If none fits by the
  // forecast but some may by the bound, it has the most.
  std::optional<Forecasted> plain, with_extra;
  bool fewer_may_fit = false;  // by the bound, fewer extra layers than in `with_extra` may fit
};

class Forecaster {
 public:
  // `structures`: from the first round; must outlive this.
  Forecaster(const Job& base, const Space& space, StructureCache* structures = nullptr);

  // Lower bound, ns, above which a strategy needs no forecast. Called by any thread; it may fall.
  using Cutoff = std::function<double(const Strategy&)>;
  // Receives results by index, in any order, one at a time.
  using Take = std::function<void(std::size_t, Forecasts&&)>;

  // Forecasts a list on all cores, except strategies whose bound is above the cut-off. The list is sorted by
  // bound. Forecasts do not depend on when the cut-off falls.
  void each(std::span<const Bounded> list, const Cutoff& cutoff, const Take& take);

  // nullopt if the layouts do not divide.
  std::optional<Forecast> forecast_of(const Strategy& strategy);
  // Forecasts of strategies that differ only in axis order. Of those with equal profiles only the first is
  // returned; their steps may still differ by groups elsewhere. Thread-safe if each thread has its own
  // `cache`.
  std::vector<Forecasted> of_orders(std::span<const Strategy> orders, LayerProfileCache& cache) const;

  const Machine& machine() const { return cache_.machine(); }

 private:
  class Worker;

  std::optional<StepProfiles> profiles_of(const Strategy& strategy, LayerProfileCache& cache) const;
  std::optional<Forecast> forecast_of(const Strategy& strategy, LayerProfileCache& cache) const;
  void forecast_of(const Strategy& strategy, LayerProfileCache& cache, Forecasts& all) const;
  bool may_be(const Strategy& strategy) const;
  void forecast_with_extra(Strategy strategy, LayerProfileCache& cache, Forecasts& all) const;

  const Job& base_;
  const Space& space_;
  std::int64_t hbm_;
  StructureCache* structures_;
  LayerProfileCache cache_;  // for single calls
};

}  // namespace hyperrun

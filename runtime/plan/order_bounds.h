// Lower bounds of a step that take the levels of the machine and the data axes into account. In any axis
// order one axis is the outermost of a stage. The minimum of the bounds over all choices of this axis is a
// bound for every order.
#pragma once

#include <map>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "runtime/ir/job.h"
#include "runtime/plan/axis_placement.h"
#include "runtime/plan/closed_form.h"
#include "runtime/plan/layer_profile_cache.h"
#include "runtime/plan/strategy.h"
#include "runtime/plan/topology_straddle.h"
#include "runtime/plan/zero_sharding.h"

namespace hyperrun {

class OrderBounds {
 public:
  // Both must outlive this.
  OrderBounds(const Job& job, LayerProfileCache& cache);

  // Lower bounds in ns, for every axis order: of the strategy, and of it with any number of extra recomputing
  // layers.
  struct Bound {
    double in_any_order = 0, bound_with_extra = 0;
  };
  // 0 if the layouts do not divide.
  Bound of(const Strategy& strategy);
  // Bound in the strategy's own order, with the pipeline as the slowest axis. Only one possible outermost
  // axis is tried.
  double in_own_order(const Strategy& strategy);

 private:
  // Profiles of a strategy, and its placement with contiguous groups.
  struct Known {
    StepProfiles profiles;
    AxisPlacement placement;
    std::optional<TopologyStraddle> straddle;  // set if some axis must be the outermost
  };
  // Placement of groups along axes: along an outermost axis, or contiguous (null). `evenly`: groups on
  // several hosts may have an equal number of devices on each, as in some axis order.
  struct GroupPlacement {
    const OutermostAxis* outermost = nullptr;
    bool evenly = true;
  };
  Known known_of(const Strategy& strategy, bool evenly);
  void place(Known& known, const Strategy& strategy, PlanAxis outermost, bool evenly);
  void bound_inner_orders(Known& known, const Strategy& strategy, Bound& bound);
  static bool may_be_outermost(const Strategy& strategy, PlanAxis axis);
  StepProfiles profiles_of(const Strategy& strategy);
  StepProfiles profiles_of(const Strategy& strategy, const OutermostAxis& axis);
  double bound_of(const Strategy& strategy, const StepProfiles& profiles,
                  const AxisPlacement& placement) const;
  double bound_with_extra(const Strategy& strategy, const StepProfiles& profiles,
                          const AxisPlacement& placement) const;
  DataTraffic traffic_of(const Strategy& strategy, const GroupPlacement& groups);
  Exchange exchange_along(const Strategy& strategy, Widths widths, const GroupPlacement& groups);
  // For weights that are split along the outermost axis only, if at all.
  Exchange exchange_along_outermost(const Strategy& strategy, const OutermostAxis& axis,
                                    const GroupPlacement& groups);
  double reduce_narrow(const Strategy& strategy, const GroupPlacement& groups);
  double sent_share(const Strategy& strategy) const;  // bytes sent for a byte of gradient
  // `groups` has an outermost axis.
  double least_all_reduce(const Strategy& strategy, int devices, int slow, const GroupPlacement& groups);
  bool is_spread_evenly(const Strategy& strategy);
  static int token_devices(const Strategy& strategy, PlanAxis axis);
  double per_byte(const Strategy& strategy, instr::CollectiveKind kind, int devices, int beside,
                  const GroupPlacement& groups);
  double per_byte(instr::CollectiveKind kind, int devices, int beside, const GroupPlacement& groups);

  const Job& job_;
  LayerProfileCache& cache_;
  // Results of is_spread_evenly().
  std::map<std::pair<decltype(Strategy::sizes), decltype(Strategy::order)>, bool> evenly_;
  // Time for a byte, by devices along the axis and other devices beside each of them.
  std::map<std::tuple<instr::CollectiveKind, int, int, int, int, int, bool>, double> per_byte_;
};

}  // namespace hyperrun

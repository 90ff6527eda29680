// Axes that cannot all be contiguous. The slowest axis of a stage's devices has the largest stride. If a unit
// of the machine (a host, a supernode) ends inside the stage, some groups along that axis straddle two units,
// whatever the axis order.
//
//   A stage of 6 devices on hosts of 4:   [0 1 2 3 | 4 5]
//   Outermost axis of size 2: groups {0,3} {1,4} {2,5}; two of them straddle the hosts.
#pragma once

#include <optional>
#include <vector>

#include "runtime/ir/machine.h"
#include "runtime/plan/strategy.h"

namespace hyperrun {

// Stages that straddle two units of a level, for the widest level with such stages. The pipeline is the
// slowest axis.
struct TopologyStraddle {
  std::vector<bool> stages;
  int begin = 0;    // first device of one such stage
  int unit = 0;     // first device of the unit that begins inside it
  int devices = 1;  // devices of a stage
};
// The highest level at which the devices of a stage lie in several units; nullopt if there is none.
std::optional<TopologyStraddle> topology_straddle(const Strategy& strategy, const Machine& machine);

// Size of a unit of the widest level that has several units among `devices` devices.
std::optional<int> widest_unit(const Machine& machine, int devices);

// A canonical order among axis orders that are equal for the machine. Neighbouring axes within one unit of a
// level, over whole units of the level below, can be swapped.
Strategy in_first_order(Strategy strategy, const Machine& machine);

// The slowest axis of a stage's devices.
struct OutermostAxis {
  PlanAxis axis = PlanAxis::kData;
  int stride = 1;  // ranks from one member to the next
  int begin = 0, unit = 0;
  bool operator==(const OutermostAxis&) const = default;
};
OutermostAxis outermost_axis(PlanAxis axis, const Strategy& strategy, const TopologyStraddle& where);

// Ranks of a group that straddles the two units: `size` members along the axis, each with `beside` contiguous
// ranks.
std::vector<int> ranks_along(const OutermostAxis& axis, int size, int beside);

}  // namespace hyperrun

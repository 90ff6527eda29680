// Where axes cannot all lie side by side. One axis is the slowest of the devices that share a stage; its
// neighbours are as far apart as all other axes need, and where a unit of the machine ends among the devices,
// some of its groups lie in two units, whatever the order of the axes.
#pragma once

#include <optional>
#include <vector>

#include "runtime/ir/machine.h"
#include "runtime/plan/strategy.h"

namespace hyperrun {

// Stages whose devices are of two units of the widest level that any stage's are of two units of; the
// pipeline's axis is the slowest of all.
struct Straddling {
  std::vector<bool> stages;
  int begin = 0;    // first device of one of them
  int unit = 0;     // that begins a unit among its devices
  int devices = 1;  // of a stage
};
// Nothing where each stage has its devices in one unit of each level, or in no more than it fills.
std::optional<Straddling> straddling(const Strategy& strategy, const Machine& machine);

// Devices of a unit of the widest level that has several among so many devices.
std::optional<int> widest_unit(const Machine& machine, int devices);

// The first of the orders of axes that are the same for the machine, if it is found: of neighbouring axes
// that lie within a unit of one level, and over units of the level below, either may be the slower one.
Strategy in_first_order(Strategy strategy, const Machine& machine);

// An axis that is the slowest of a stage's devices.
struct Outermost {
  PlanAxis axis = PlanAxis::kData;
  int apart = 1;  // ranks from neighbour to neighbour
  int begin = 0, unit = 0;
  bool operator==(const Outermost&) const = default;
};
Outermost outermost(PlanAxis axis, const Strategy& strategy, const Straddling& where);

// Ranks of a group of two units along the axis, which has so many devices, and along others, which have
// `beside` side by side.
std::vector<int> ranks_along(const Outermost& axis, int size, int beside);

}  // namespace hyperrun

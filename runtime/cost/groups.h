// The groups of devices in which a Program communicates: along each list of mesh axes that it names, the
// mesh falls into disjoint groups.
#pragma once

#include <span>
#include <vector>

#include "collectives/cost.h"
#include "memory/host.h"
#include "runtime/ir/machine.h"
#include "runtime/ir/program.h"

namespace hyperrun {

// Which levels of the machine the messages of a group cross.
struct Reach {
  int inside = 0;   // the widest between members of one host
  int between = 0;  // the widest of all
  // Of the units that the first member is in, at the level itself and below it.
  struct Unit {
    std::int64_t below = 1;                       // devices of the job in the unit below
    std::int64_t members_below = 1, members = 1;  // of the group, in the unit below and in the unit itself
    bool operator==(const Unit&) const = default;
  };
  Unit inside_unit, between_unit;
  bool operator==(const Reach&) const = default;
};
Reach reach_of(const std::vector<int>& ranks, const Topology& topology, const Machine& machine);

// Devices that read each other's HBM in place are of one host.
Topology hosts_of(const Machine& machine, int devices);

// Where each member of a group stands in it; the order is that of `ranks`.
std::vector<Place> places(const std::vector<int>& ranks, const Topology& topology);

// All groups along one list of axes.
struct AxisGroups {
  AxisList axes;
  std::vector<std::vector<int>> members;  // of each group, in the order of Mesh::index
  std::vector<Reach> reach;               // of each group
  std::vector<int> group_of;              // by device
  std::vector<Place> place_of;            // by device, in its group

  AxisGroups(const Mesh& mesh, const Topology& topology, const Machine& machine, AxisList along);
};

// The lists of axes that the Programs' collectives name, in the order of their first use.
std::vector<AxisGroups> groups_of(std::span<const Program* const> programs, const Topology& topology,
                                  const Machine& machine);

}  // namespace hyperrun

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
  // Of the units that the lowest member is in, at the level itself and below it.
  struct Unit {
    std::int64_t below = 1;                       // devices of the job in the unit below
    std::int64_t members_below = 1, members = 1;  // of the group, in the unit below and in the unit itself
    bool operator==(const Unit&) const = default;
  };
  Unit inside_unit, between_unit;
  bool operator==(const Reach&) const = default;
};
Reach reach_of(const std::vector<int>& ranks, const Topology& topology, const Machine& machine);

// How a collective's group lies on the machine; of no meaning for other instructions.
struct Where {
  GroupShape shape;
  Reach reach;
  bool operator==(const Where&) const = default;
};
Where where_of(const std::vector<int>& ranks, const Topology& topology, const Machine& machine);

// Devices that read each other's HBM in place are of one host.
Topology hosts_of(const Machine& machine, int devices);

// Where each member of a group stands in it; the order is that of `ranks`.
std::vector<Place> places(const std::vector<int>& ranks, const Topology& topology);

// After so many devices hosts and levels begin again as they began: a group lies as its translation by that
// many does. All devices where there is nothing that comes again.
std::int64_t period_of(const Topology& topology, const Machine& machine);

// All groups along one list of axes.
struct AxisGroups {
  // What many groups have in common: how they lie, and where each member stands.
  struct Spread {
    Where where;
    std::vector<Place> places;
  };

  AxisList axes;
  std::vector<std::vector<int>> members;  // of each group, in the order of Mesh::index
  std::vector<Spread> spreads;            // that there are
  std::vector<int> spread_of;             // by group
  std::vector<int> group_of, index_of;    // by device: its group, and its place among the members

  // `period`: of topology and machine.
  AxisGroups(const Mesh& mesh, const Topology& topology, const Machine& machine, std::int64_t period,
             AxisList along);

  const std::vector<int>& group(int device) const {
    return members[static_cast<std::size_t>(group_of[static_cast<std::size_t>(device)])];
  }
  int spread(int device) const {
    return spread_of[static_cast<std::size_t>(group_of[static_cast<std::size_t>(device)])];
  }
  const Where& where(int device) const { return spreads[static_cast<std::size_t>(spread(device))].where; }
  const Place& place(int device) const {
    return spreads[static_cast<std::size_t>(spread(device))]
        .places[static_cast<std::size_t>(index_of[static_cast<std::size_t>(device)])];
  }
};

// The lists of axes that the Programs' collectives name, in the order of their first use.
std::vector<AxisGroups> groups_of(std::span<const Program* const> programs, const Topology& topology,
                                  const Machine& machine);

}  // namespace hyperrun

// The groups of devices in which a Program communicates. Each list of mesh axes that it names divides the
// mesh into disjoint groups.
#pragma once

#include <span>
#include <vector>

#include "collectives/cost.h"
#include "memory/host.h"
#include "runtime/ir/machine.h"
#include "runtime/ir/program.h"

namespace hyperrun {

// The levels of the machine that the messages of a group cross.
struct Reach {
  int inside = 0;   // the widest level between members of one host
  int between = 0;  // the widest level between any members
  // Counts for the unit that the lowest member is in.
  struct Unit {
    std::int64_t below = 1;                       // devices of the job in the unit below
    std::int64_t members_below = 1, members = 1;  // of the group, in the unit below and in this one
    bool operator==(const Unit&) const = default;
  };
  Unit inside_unit, between_unit;
  bool operator==(const Reach&) const = default;
};
Reach reach_of(const std::vector<int>& ranks, const Topology& topology, const Machine& machine);

// The position of a collective's group on the machine. Other instructions ignore it.
struct Where {
  GroupShape shape;
  Reach reach;
  bool operator==(const Where&) const = default;
};
Where where_of(const std::vector<int>& ranks, const Topology& topology, const Machine& machine);

// Assigns devices to hosts. Devices of one host can read each other's HBM.
Topology hosts_of(const Machine& machine, int devices);

// The place of each member in its group, in the order of `ranks`.
std::vector<Place> places(const std::vector<int>& ranks, const Topology& topology);

// The period of hosts and levels in devices: a group and its translation by a period have equal positions on
// the machine. The number of devices if nothing repeats.
std::int64_t period_of(const Topology& topology, const Machine& machine);

// All groups along one list of axes.
struct AxisGroups {
  // Groups with equal positions share this.
  struct Spread {
    Where where;
    std::vector<Place> places;
  };

  AxisList axes;
  std::vector<std::vector<int>> members;  // by group, in the order of Mesh::index
  std::vector<Spread> spreads;            // all different ones
  std::vector<int> spread_of;             // by group
  std::vector<int> group_of, index_of;    // by device: its group, and its index among the members

  // `period`: from period_of().
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

// The groups along each list of axes that the Programs' collectives name, in order of first use.
std::vector<AxisGroups> groups_of(std::span<const Program* const> programs, const Topology& topology,
                                  const Machine& machine);

}  // namespace hyperrun

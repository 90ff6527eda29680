// The groups of devices in which a Program communicates: along each list of mesh axes that it names, the
// mesh falls into disjoint groups.
#pragma once

#include <span>
#include <vector>

#include "collectives/cost.h"
#include "memory/host.h"
#include "runtime/ir/program.h"

namespace hyperrun {

// Where each member of a group stands in it; the order is that of `ranks`.
std::vector<Place> places(const std::vector<int>& ranks, const Topology& topology);

// All groups along one list of axes.
struct AxisGroups {
  AxisList axes;
  std::vector<std::vector<int>> members;  // of each group, in the order of Mesh::index
  std::vector<int> group_of;              // by device
  std::vector<Place> place_of;            // by device, in its group

  AxisGroups(const Mesh& mesh, const Topology& topology, AxisList along);
};

// The lists of axes that the Programs' collectives name, in the order of their first use.
std::vector<AxisGroups> groups_of(std::span<const Program> programs, const Topology& topology);

}  // namespace hyperrun

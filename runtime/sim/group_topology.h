// GroupTopology says how the members of a Program's collectives lie on the machine: groups along mesh axes,
// and pairs of devices that exchange messages. A pair may be nearer or farther apart than the group that it
// belongs to.
#pragma once

#include <array>
#include <span>
#include <vector>

#include "runtime/cost/groups.h"
#include "runtime/ir/instr.h"
#include "runtime/ir/machine.h"
#include "runtime/ir/program.h"

namespace hyperrun {

class GroupTopology {
 public:
  // The topology and the machine must outlive it.
  GroupTopology(std::span<const Program* const> programs, const Topology& topology, const Machine& machine);

  const std::vector<AxisGroups>& groups() const { return groups_; }
  // Index in groups() of the groups along the collective's axes.
  int along(const instr::Collective& c) const;
  // The device at the other end of a message.
  int peer(const instr::Collective& c, int along, int device) const;

  // A number of the pair's distance; pairs that lie alike have the same number.
  int pair(int device, int other) const;
  Where where(const instr::Collective& c, int along, int device) const;
  // The device's place among the members of the collective.
  Place place(const instr::Collective& c, int along, int device) const;

 private:
  const Topology& topology_;
  const Machine& machine_;
  std::vector<AxisGroups> groups_;
  // True if all units of each level have equally many devices. A pair is then known by the level that holds
  // it and by whether it is on one host.
  bool whole_;
  mutable std::vector<int> pair_of_level_;
  mutable std::vector<Where> pairs_;
};

}  // namespace hyperrun

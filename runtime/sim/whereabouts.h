// How those lie on the machine who meet in a Program's collectives: groups along mesh axes, and the pairs of
// messages, which are nearer or farther than the groups that they belong to.
#pragma once

#include <array>
#include <span>
#include <vector>

#include "runtime/cost/groups.h"
#include "runtime/ir/instr.h"
#include "runtime/ir/machine.h"
#include "runtime/ir/program.h"

namespace hyperrun {

class Whereabouts {
 public:
  // Topology and machine outlive it.
  Whereabouts(std::span<const Program* const> programs, const Topology& topology, const Machine& machine);

  const std::vector<AxisGroups>& groups() const { return groups_; }
  // The index of those in which the collective's group is.
  int along(const instr::Collective& c) const;
  // The device at the other end of a message.
  int peer(const instr::Collective& c, int along, int device) const;

  // Pairs of devices that lie alike have one number.
  int pair(int device, int other) const;
  Where where(const instr::Collective& c, int along, int device) const;
  // Where the device stands among those that take part.
  Place place(const instr::Collective& c, int along, int device) const;

 private:
  const Topology& topology_;
  const Machine& machine_;
  std::vector<AxisGroups> groups_;
  // As many devices in each unit of a level: then a pair is known by the level that holds it, and by whether
  // it is of one host.
  bool whole_;
  mutable std::vector<int> pair_of_level_;
  mutable std::vector<Where> pairs_;
};

}  // namespace hyperrun

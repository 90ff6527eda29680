#include "runtime/sim/group_topology.h"

#include <algorithm>

#include "collectives/selection.h"

namespace hyperrun {
namespace {

std::size_t at(int i) { return static_cast<std::size_t>(i); }

}  // namespace

GroupTopology::GroupTopology(std::span<const Program* const> programs, const Topology& topology,
                             const Machine& machine)
    : topology_(topology),
      machine_(machine),
      groups_(groups_of(programs, topology, machine)),
      whole_(std::ranges::all_of(machine.levels,
                                 [&](const Level& l) { return topology.size() % l.devices == 0; })),
      pair_of_level_(2 * machine.levels.size() + 2, -1) {}

int GroupTopology::along(const instr::Collective& c) const {
  return static_cast<int>(std::ranges::find(groups_, c.axes, &AxisGroups::axes) - groups_.begin());
}

int GroupTopology::peer(const instr::Collective& c, int along, int device) const {
  return groups_[at(along)].group(device)[at(c.peer)];
}

int GroupTopology::pair(int device, int other) const {
  const bool one_host = topology_.host_of[at(device)] == topology_.host_of[at(other)];
  int& known = pair_of_level_[at(2 * (machine_.level_between(device, other) + 1) + (one_host ? 1 : 0))];
  if (whole_ && known >= 0) return known;
  const Where where = where_of({device, other}, topology_, machine_);
  const auto it = std::ranges::find(pairs_, where);
  known = static_cast<int>(it - pairs_.begin());
  if (it == pairs_.end()) pairs_.push_back(where);
  return known;
}

Where GroupTopology::where(const instr::Collective& c, int along, int device) const {
  if (!instr::is_message(c.kind)) return groups_[at(along)].where(device);
  return pairs_[at(pair(device, peer(c, along, device)))];
}

Place GroupTopology::place(const instr::Collective& c, int along, int device) const {
  if (!instr::is_message(c.kind)) return groups_[at(along)].place(device);
  return {.shape = where(c, along, device).shape};
}

}  // namespace hyperrun

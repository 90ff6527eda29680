// The bytes that each device moves in a Program, by kind and by level of the machine. They are exact and need
// no simulation.
#pragma once

#include <span>
#include <vector>

#include "runtime/base/units.h"
#include "runtime/ir/machine.h"
#include "runtime/ir/stats.h"
#include "runtime/sim/group_topology.h"
#include "runtime/sim/timed_role.h"

namespace hyperrun {

struct DeviceTraffic {
  // The kinds in the order in which its Program first uses them, collectives before transfers, by role.
  std::vector<std::vector<TrafficKind>> kinds;
  std::vector<std::vector<std::int64_t>> counts;  // by role, by kind
  std::vector<std::vector<Bytes>> by_kind;        // by device, by kind of its role
  std::vector<std::vector<Bytes>> by_level;       // by device, by level of the machine
};
DeviceTraffic count_traffic(std::span<const TimedRole> roles, std::span<const std::size_t> role_of,
                            const GroupTopology& group_topology, const Machine& machine);

}  // namespace hyperrun

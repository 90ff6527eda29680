// The timed Program of a role, and the groups in which its collectives meet.
#pragma once

#include <utility>
#include <vector>

#include "runtime/sim/group_topology.h"
#include "runtime/sim/timed_program.h"

namespace hyperrun {

struct TimedRole {
  TimedProgram timed;
  std::vector<int> along;  // by distinct collective: index of its groups in GroupTopology::groups()

  TimedRole(TimedProgram t, const GroupTopology& group_topology) : timed(std::move(t)) {
    for (const TimedProgram::DistinctCollective& distinct : timed.collectives())
      along.push_back(group_topology.along(distinct.collective()));
  }
};

}  // namespace hyperrun

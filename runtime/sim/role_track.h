// The track of a role's Program, with where its collectives meet.
#pragma once

#include <utility>
#include <vector>

#include "runtime/sim/track.h"
#include "runtime/sim/whereabouts.h"

namespace hyperrun {

struct RoleTrack {
  Track track;
  std::vector<int> along;  // by slot: which of the groups

  RoleTrack(Track t, const Whereabouts& whereabouts) : track(std::move(t)) {
    for (const Track::Slot& slot : track.slots()) along.push_back(whereabouts.along(slot.collective()));
  }
};

}  // namespace hyperrun

// Every buffer gets its place in the arena.
#pragma once

#include <map>
#include <string>

#include "runtime/ir/program.h"

namespace hyperrun {

// Where the job's state lies: the same in all its Programs, below everything else of its tier.
struct StatePlaces {
  struct Place {
    Tier tier = Tier::kHbm;
    Bytes offset{};
  };
  std::map<std::string, Place> places;  // by buffer name
  TierBytes end{};
};

// Adds the state buffers of `program` that are not placed yet.
void place_state(const Program& program, StatePlaces& places);

// Sets lifetimes, offsets and the peak: as low as can be found, or not above `enough` of HBM. State must have
// been placed.
void place_buffers(Program& program, const StatePlaces& places, Bytes enough = Bytes(0));

}  // namespace hyperrun

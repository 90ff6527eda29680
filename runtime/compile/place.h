// Every buffer gets its place in the arena.
#pragma once

#include <map>
#include <span>
#include <string>

#include "runtime/ir/program.h"

namespace hyperrun {

// Where the job's state lies: the same in all its Programs, below everything else of its tier. The cache of a
// generation lies above all other state; Programs that have none use its place for what they compute.
struct StatePlaces {
  struct Place {
    Tier tier = Tier::kHbm;
    Bytes offset{};
  };
  std::map<std::string, Place> places;  // by buffer name
  TierBytes end{}, end_of_cache{};

  // Where what is not state begins.
  const TierBytes& below(const Program& program) const;
};

// Of buffers: a cache line; on flash what is read and written at once.
Bytes alignment_of(Tier tier);

// Adds the state buffers of the programs, which are not placed yet.
void place_state(std::span<const Program> programs, StatePlaces& places);

// What lives at once in HBM, of one without places: no placing gets below it. Sets lifetimes.
Bytes live_peak(Program& program, const StatePlaces& places);

// Gives each buffer a place of its own, state or not, and sets lifetimes.
void place_apart(Program& program);

// Sets lifetimes, offsets and the peak: as low as can be found, or not above `enough` of HBM. State must have
// been placed.
void place_buffers(Program& program, const StatePlaces& places, Bytes enough = Bytes(0));

}  // namespace hyperrun

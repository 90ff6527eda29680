// Assigns each buffer its offset in the arena.
#pragma once

#include <map>
#include <span>
#include <string>

#include "runtime/ir/program.h"

namespace hyperrun {

// The offsets of the job's state: the same in all Programs of a role, below everything else of the tier. The
// cache of a generation lies above all other state. Programs without a cache use its room for temporary
// buffers.
struct StatePlaces {
  struct Place {
    Tier tier = Tier::kHbm;
    Bytes offset{};
  };
  std::map<std::string, Place> places;  // by buffer name
  TierBytes end{}, end_of_cache{};

  // The offsets at which the Program's temporary buffers may begin, by tier.
  const TierBytes& below(const Program& program) const;
};

// The alignment of buffers: a cache line; on flash the unit of reading and writing.
Bytes alignment_of(Tier tier);

// Adds the programs' state buffers that have no place yet.
void place_state(std::span<const Program> programs, StatePlaces& places);

// The live peak in HBM of a Program without offsets, with state: a lower bound of its peak. Sets lifetimes.
Bytes live_peak(Program& program, const StatePlaces& places);

// Gives each buffer, state or not, addresses that no other buffer shares, and sets lifetimes.
void place_apart(Program& program);

// Sets lifetimes, offsets and the peak. The peak in HBM is the lowest that is found, or any within `enough`.
// State must have been placed before.
void place_buffers(Program& program, const StatePlaces& places, Bytes enough = Bytes(0));

}  // namespace hyperrun

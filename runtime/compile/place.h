// Every buffer gets its place in the arena.
#pragma once

#include <map>
#include <string>

#include "runtime/ir/program.h"

namespace hyperrun {

// Where the job's state lies: the same in all its Programs, below everything else.
struct StatePlaces {
  std::map<std::string, Bytes> offsets;  // by buffer name
  Bytes end{};
};

// Adds the state buffers of `program` that are not placed yet.
void place_state(const Program& program, StatePlaces& places);

// Sets lifetimes, offsets and the peak. State must have been placed.
void place_buffers(Program& program, const StatePlaces& places);

}  // namespace hyperrun

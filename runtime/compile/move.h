// What lies beyond HBM becomes instructions, and everything gets its place.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "runtime/compile/place.h"
#include "runtime/ir/job.h"
#include "runtime/offload/uses.h"

namespace hyperrun {

using BufferNames = std::set<std::string>;

Tier tier_of(const MemorySpec& memory);
std::vector<Category> movable_categories(const MemorySpec& memory);

BufferNames names_of(const Program& program, const std::vector<std::int32_t>& buffers);

// State lies where its home is, by all Programs of a role: those named in `homes` in the tier.
StatePlaces state_places(const std::vector<Program>& programs, const BufferNames& homes, Tier tier);

// Adds the transfers, gives everything its place and adds events. `moves`: one of each Program.
StatePlaces move_and_place(std::vector<Program>& programs, const Job& job,
                           const std::vector<Absences>& moves);

}  // namespace hyperrun

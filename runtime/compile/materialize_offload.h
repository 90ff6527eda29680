// Turns offload plans into instructions, and assigns offsets and events.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "runtime/compile/place.h"
#include "runtime/ir/job.h"
#include "runtime/offload/offload_plan.h"

namespace hyperrun {

using BufferNames = std::set<std::string>;

Tier tier_of(const MemorySpec& memory);
std::vector<Category> movable_categories(const MemorySpec& memory);

BufferNames names_of(const Program& program, const std::vector<std::int32_t>& buffers);

// Offsets of a role's state, the same in all its Programs. Buffers named in `offloaded` lie in `tier`, others
// where they are declared.
StatePlaces state_places(const std::vector<Program>& programs, const BufferNames& offloaded, Tier tier);

// Adds transfers, offsets and events to a role's Programs. `moves`: by Program.
StatePlaces materialize_offload(std::vector<Program>& programs, const Job& job,
                                const std::vector<OffloadPlan>& moves);

}  // namespace hyperrun

#include "runtime/compile/materialize_offload.h"

#include <algorithm>

#include "runtime/compile/events.h"
#include "runtime/offload/apply.h"

namespace hyperrun {

Tier tier_of(const MemorySpec& memory) { return memory.tier == "flash" ? Tier::kFlash : Tier::kPool; }

std::vector<Category> movable_categories(const MemorySpec& memory) {
  std::vector<std::string> names = memory.tensors;
  if (names.empty() && memory.policy == "weights") names = {"weights"};
  if (names.empty()) names = {"weights", "gradients", "optimizer", "activations", "cache"};
  std::vector<Category> list;
  for (std::size_t c = 0; c < kCategories; ++c)
    if (std::ranges::find(names, name(static_cast<Category>(c))) != names.end())
      list.push_back(static_cast<Category>(c));
  return list;
}

BufferNames names_of(const Program& program, const std::vector<std::int32_t>& buffers) {
  BufferNames names;
  for (const std::int32_t b : buffers) names.insert(program.buffers[static_cast<std::size_t>(b)].name);
  return names;
}

StatePlaces state_places(const std::vector<Program>& programs, const BufferNames& offloaded, Tier tier) {
  std::vector<Program> states;
  for (const Program& program : programs) {
    Program& state = states.emplace_back();
    for (const Buffer& b : program.buffers) {
      if (!b.state) continue;
      state.buffers.push_back(b);
      if (offloaded.contains(b.name)) state.buffers.back().tier = tier;
    }
  }
  StatePlaces places;
  place_state(states, places);
  return places;
}

StatePlaces materialize_offload(std::vector<Program>& programs, const Job& job,
                                const std::vector<OffloadPlan>& moves) {
  const Tier tier = tier_of(job.memory);
  const std::vector<Category> movable = movable_categories(job.memory);
  BufferNames offloaded;
  for (std::size_t p = 0; p < programs.size(); ++p)
    offloaded.merge(names_of(programs[p], moves[p].offloaded_state));
  const StatePlaces places = state_places(programs, offloaded, tier);
  for (std::size_t p = 0; p < programs.size(); ++p) {
    const bool moved = moves[p] != OffloadPlan{};
    if (moved) apply(programs[p], uses_of_buffers(programs[p], movable), moves[p], tier);
    place_buffers(programs[p], places, moved ? job.supernode.hbm : Bytes(0));
    add_events(programs[p]);
  }
  return places;
}

}  // namespace hyperrun

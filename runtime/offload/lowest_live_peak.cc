#include <algorithm>

#include "runtime/offload/policy.h"

namespace hyperrun {

Bytes lowest_live_peak(const OffloadProblem& p) {
  const auto n = static_cast<std::int32_t>(p.program.instrs.size());
  std::vector<std::int64_t> change(static_cast<std::size_t>(n) + 1);
  for (std::size_t b = 0; b < p.uses.size(); ++b) {
    const auto& accesses = p.uses[b].accesses;
    const Buffer& buffer = p.program.buffers[b];
    if (accesses.empty() || buffer.tier != Tier::kHbm) continue;
    const std::int64_t bytes = (buffer.bytes.value + 63) / 64 * 64;
    const auto lives = [&](std::int32_t first, std::int32_t last) {
      change[static_cast<std::size_t>(first)] += bytes;
      change[static_cast<std::size_t>(last) + 1] -= bytes;
    };
    const bool offloaded = std::ranges::binary_search(p.offloaded_state, static_cast<std::int32_t>(b));
    if (!offloaded && (!p.uses[b].movable || (buffer.state && !p.may_offload_state))) {
      lives(buffer.state ? 0 : accesses.front().instr, buffer.state ? n - 1 : accesses.back().instr);
      continue;
    }
    for (std::size_t k = 0; k < accesses.size(); ++k) {
      const bool stays = accesses[k].arrives && k + 1 < accesses.size();
      lives(accesses[k].instr, stays ? accesses[k + 1].instr - 1 : accesses[k].instr);
    }
  }
  std::int64_t live = 0, most = 0;
  for (const std::int64_t c : change) most = std::max(most, live += c);
  return Bytes(most);
}

}  // namespace hyperrun

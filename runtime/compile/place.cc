#include "runtime/compile/place.h"

#include <algorithm>

#include "memory/delay_address_reuse.h"
#include "memory/offset_allocator.h"
#include "runtime/base/error.h"

namespace hyperrun {
namespace {

Bytes aligned(Bytes b, Tier tier) {
  const std::int64_t to = alignment_of(tier).value;
  return Bytes((b.value + to - 1) / to * to);
}

void find_lifetimes(Program& program) {
  for (std::size_t i = 0; i < program.instrs.size(); ++i)
    each_use(program.instrs[i], [&](const Operand& operand, bool, bool) {
      Buffer& b = program.buffers[operand.buffer.index()];
      if (b.first < 0) b.first = static_cast<std::int32_t>(i);
      b.last = static_cast<std::int32_t>(i);
    });
  // A sent buffer stays until the next message is sent, so that nothing has to wait for the peer to fetch it.
  auto until = static_cast<std::int32_t>(program.instrs.size()) - 1;
  for (std::size_t i = program.instrs.size(); i-- > 0;) {
    if (program.instrs[i].stream != StreamKind::kSend) continue;
    Buffer& b = program.buffers[program.instrs[i].in[0].buffer.index()];
    b.last = std::max(b.last, until);
    until = static_cast<std::int32_t>(i);
  }
  for (const Output& output : program.outputs)
    program.buffers[output.operand.buffer.index()].last =
        static_cast<std::int32_t>(program.instrs.size()) - 1;
}

bool is_cache(const Buffer& b) { return b.state && b.category == Category::kCache; }

void place_state(const Program& program, bool caches, std::map<std::string, StatePlaces::Place>& places,
                 TierBytes& ends) {
  for (const Buffer& b : program.buffers) {
    if (!b.state || is_cache(b) != caches) continue;
    Bytes& end = ends[index_of(b.tier)];
    if (places.try_emplace(b.name, b.tier, end).second) end += aligned(b.bytes, b.tier);
  }
}

// Places all buffers that are not state, above the state.
void place_temporary(Program& program, Tier tier, Bytes above, Bytes enough) {
  std::vector<Lifetime> lifetimes;
  std::vector<Buffer*> buffers;
  for (Buffer& b : program.buffers) {
    if (b.state || b.tier != tier) continue;
    HR_CHECK(b.first >= 0, b.name + " is never used");
    lifetimes.push_back({b.first, b.last, b.bytes});
    buffers.push_back(&b);
  }
  Assignment assignment = assign_offsets(lifetimes, alignment_of(tier), enough);
  delay_address_reuse(lifetimes, assignment, alignment_of(tier));
  for (std::size_t i = 0; i < buffers.size(); ++i) buffers[i]->offset = above + assignment.offsets[i];
}

}  // namespace

Bytes alignment_of(Tier tier) { return Bytes(tier == Tier::kFlash ? 4096 : 64); }

const TierBytes& StatePlaces::below(const Program& program) const {
  return std::ranges::any_of(program.buffers, is_cache) ? end_of_cache : end;
}

void place_state(std::span<const Program> programs, StatePlaces& places) {
  for (const Program& p : programs) place_state(p, false, places.places, places.end);
  places.end_of_cache = places.end;
  for (const Program& p : programs) place_state(p, true, places.places, places.end_of_cache);
}

Bytes live_peak(Program& program, const StatePlaces& places) {
  find_lifetimes(program);
  std::vector<Lifetime> lifetimes;
  for (const Buffer& b : program.buffers)
    if (!b.state && b.tier == Tier::kHbm) lifetimes.push_back({b.first, b.last, b.bytes});
  return places.below(program)[index_of(Tier::kHbm)] + max_live(lifetimes, alignment_of(Tier::kHbm));
}

void place_apart(Program& program) {
  find_lifetimes(program);
  Bytes end{};
  for (Buffer& b : program.buffers) {
    b.offset = end;
    end += aligned(b.bytes, b.tier);
  }
}

void place_buffers(Program& program, const StatePlaces& places, Bytes enough) {
  find_lifetimes(program);
  for (Buffer& b : program.buffers) {
    if (!b.state) continue;
    const StatePlaces::Place& place = places.places.at(b.name);
    HR_CHECK(place.tier == b.tier, b.name + " is state of another tier");
    b.offset = place.offset;
  }
  for (const Tier tier : {Tier::kHbm, Tier::kPool, Tier::kFlash}) {
    const Bytes above = places.below(program)[index_of(tier)];
    place_temporary(program, tier, above, tier == Tier::kHbm && enough > above ? enough - above : Bytes(0));
    Bytes& peak = program.peak[index_of(tier)] = Bytes(0);
    for (const Buffer& b : program.buffers)
      if (b.tier == tier) peak = std::max(peak, b.offset + b.bytes);
  }
}

}  // namespace hyperrun

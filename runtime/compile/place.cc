#include "runtime/compile/place.h"

#include <algorithm>

#include "memory/offset_allocator.h"
#include "runtime/base/error.h"

namespace hyperrun {
namespace {

constexpr Bytes kAlignment{64};

Bytes aligned(Bytes b) {
  return Bytes((b.value + kAlignment.value - 1) / kAlignment.value * kAlignment.value);
}

void find_lifetimes(Program& program) {
  for (std::size_t i = 0; i < program.instrs.size(); ++i)
    for (const Use& use : uses(program.instrs[i])) {
      Buffer& b = program.buffers[use.operand.buffer.index()];
      if (b.first < 0) b.first = static_cast<std::int32_t>(i);
      b.last = static_cast<std::int32_t>(i);
    }
  // What is sent lies there until the next message is: until then nobody has to wait for the peer to fetch
  // it.
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

}  // namespace

void place_state(const Program& program, StatePlaces& places) {
  for (const Buffer& b : program.buffers)
    if (b.state && places.offsets.emplace(b.name, places.end).second) places.end += aligned(b.bytes);
}

void place_buffers(Program& program, const StatePlaces& places) {
  find_lifetimes(program);
  std::vector<Lifetime> lifetimes;
  std::vector<Buffer*> buffers;
  for (Buffer& b : program.buffers) {
    if (b.state) {
      b.offset = places.offsets.at(b.name);
    } else {
      HR_CHECK(b.first >= 0, b.name + " is never used");
      lifetimes.push_back({b.first, b.last, b.bytes});
      buffers.push_back(&b);
    }
  }
  const Assignment assignment = assign_offsets(lifetimes, kAlignment);
  for (std::size_t i = 0; i < buffers.size(); ++i) buffers[i]->offset = places.end + assignment.offsets[i];
  Bytes& peak = program.peak[static_cast<std::size_t>(Tier::kHbm)];
  for (const Buffer& b : program.buffers) peak = std::max(peak, b.offset + b.bytes);
}

}  // namespace hyperrun

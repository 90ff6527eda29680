#include "runtime/offload/rematerialize.h"

#include <algorithm>
#include <span>

namespace hyperrun {

std::int32_t producer_of(const Program& program, const std::vector<BufferUses>& uses, std::int32_t buffer,
                         std::int32_t after) {
  const Buffer& made = program.buffers[static_cast<std::size_t>(buffer)];
  const auto upto =
      std::span(uses[static_cast<std::size_t>(buffer)].accesses).first(static_cast<std::size_t>(after) + 1);
  const auto last = std::ranges::find(upto.rbegin(), upto.rend(), true, &Access::writes);
  if (made.state || last == upto.rend() || last->reads) return -1;
  const Instr& producer = program.instrs[static_cast<std::size_t>(last->instr)];
  const bool computes = producer.stream == StreamKind::kCube || producer.stream == StreamKind::kVector;
  if (!computes || producer.in.empty() || accumulating_output(producer.op) >= 0 || !tile_of(producer).whole())
    return -1;
  for (const Operand& o : producer.out)
    if (program[o.buffer].state || program[o.buffer].bytes > made.bytes) return -1;
  return last->instr;
}

std::int32_t inputs_unchanged_until(const Program& program, const std::vector<BufferUses>& uses,
                                    std::int32_t producer) {
  auto until = static_cast<std::int32_t>(program.instrs.size());
  for (const Operand& o : program.instrs[static_cast<std::size_t>(producer)].in) {
    const std::vector<Access>& list = uses[o.buffer.index()].accesses;
    const auto changed =
        std::ranges::find_if(list, [&](const Access& a) { return a.writes && a.instr >= producer; });
    if (changed != list.end()) until = std::min(until, changed->instr);
  }
  return until;
}

}  // namespace hyperrun

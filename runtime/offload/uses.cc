#include "runtime/offload/uses.h"

#include <algorithm>

namespace hyperrun {
namespace {

constexpr Bytes kSmallest{64};  // the alignment of buffers

}  // namespace

std::vector<BufferUses> uses_of_buffers(const Program& program, std::span<const Category> movable) {
  std::vector<BufferUses> list(program.buffers.size());
  for (std::size_t b = 0; b < list.size(); ++b) {
    const Buffer& buffer = program.buffers[b];
    list[b].movable = buffer.bytes >= kSmallest && buffer.tier == Tier::kHbm &&
                      std::ranges::find(movable, buffer.category) != movable.end();
  }
  for (const Output& output : program.outputs) list[output.operand.buffer.index()].movable = false;
  for (std::size_t i = 0; i < program.instrs.size(); ++i)
    each_use(program.instrs[i], [&](const Operand& operand, bool read, bool write) {
      std::vector<Access>& accesses = list[operand.buffer.index()].accesses;
      const auto instr = static_cast<std::int32_t>(i);
      // What is written in part keeps the rest; of tiles the first one finds nothing to keep.
      const bool first = accesses.empty() || accesses.front().instr == instr;
      if (accesses.empty() || accesses.back().instr != instr) accesses.push_back({instr});
      Access& access = accesses.back();
      const bool in_part = operand.bytes < program[operand.buffer].bytes || (!operand.tile.whole() && !first);
      access.reads = access.reads || read || in_part;
      access.writes = access.writes || write;
      access.arrives = program.instrs[i].stream == StreamKind::kRecv;
    });
  return list;
}

}  // namespace hyperrun

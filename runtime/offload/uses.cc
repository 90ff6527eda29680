#include "runtime/offload/uses.h"

#include <algorithm>

#include "runtime/ir/row_counts.h"

namespace hyperrun {
namespace {

constexpr Bytes kSmallest{64};  // the alignment of buffers

void note_read(std::vector<Access>& accesses, std::int32_t instr) {
  if (accesses.empty() || accesses.back().instr != instr) accesses.push_back({instr});
  accesses.back().reads = true;
}

}  // namespace

std::vector<BufferUses> uses_of_buffers(const Program& program, std::span<const Category> movable) {
  std::vector<BufferUses> list(program.buffers.size());
  for (std::size_t b = 0; b < list.size(); ++b) {
    const Buffer& buffer = program.buffers[b];
    list[b].movable = buffer.bytes >= kSmallest && buffer.tier == Tier::kHbm &&
                      std::ranges::find(movable, buffer.category) != movable.end();
  }
  const std::map<std::int32_t, RowCounts> counts = counts_of_rows(program);
  for (const auto& [rows, of] : counts) list[of.counts.buffer.index()].movable = false;
  for (const Output& output : program.outputs) list[output.operand.buffer.index()].movable = false;
  for (std::size_t i = 0; i < program.instrs.size(); ++i)
    each_use(program.instrs[i], [&](const Operand& operand, bool read, bool write) {
      std::vector<Access>& accesses = list[operand.buffer.index()].accesses;
      const auto instr = static_cast<std::int32_t>(i);
      // A partial write preserves the other bytes, so it reads them. The first tile finds nothing to
      // preserve.
      const bool first = accesses.empty() || accesses.front().instr == instr;
      if (accesses.empty() || accesses.back().instr != instr) accesses.push_back({instr});
      Access& access = accesses.back();
      const bool in_part = operand.bytes < program[operand.buffer].bytes || (!operand.tile.whole() && !first);
      access.reads = access.reads || read || in_part;
      access.writes = access.writes || write;
      access.arrives = program.instrs[i].stream == StreamKind::kRecv;
      if (const auto of = counts.find(operand.buffer.value); of != counts.end())
        note_read(list[of->second.counts.buffer.index()].accesses, instr);
    });
  return list;
}

}  // namespace hyperrun

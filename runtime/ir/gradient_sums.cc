#include "runtime/ir/gradient_sums.h"

namespace hyperrun {

std::vector<std::int32_t> gradient_sums(const Program& program) {
  std::vector<bool> made(program.buffers.size()), used(program.buffers.size());
  for (const Instr& instr : program.instrs)
    each_use(instr, [&](const Operand& operand, bool read, bool write) {
      const std::size_t b = operand.buffer.index();
      if (instr.pass == Pass::kUpdate)
        used[b] = used[b] || read;
      else
        made[b] = made[b] || write;
    });
  std::vector<std::int32_t> sums;
  for (std::size_t b = 0; b < program.buffers.size(); ++b)
    if (program.buffers[b].category == Category::kGradients && made[b] && used[b])
      sums.push_back(static_cast<std::int32_t>(b));
  return sums;
}

}  // namespace hyperrun

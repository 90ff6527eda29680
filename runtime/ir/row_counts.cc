#include "runtime/ir/row_counts.h"

#include "runtime/base/overloaded.h"

namespace hyperrun {

std::map<std::int32_t, RowCounts> counts_of_rows(const Program& program) {
  std::map<std::int32_t, RowCounts> list;
  for (const Instr& instr : program.instrs) {
    const auto rows = [&](const Operand& o, std::int64_t width, std::size_t counts) {
      if (o.bytes == program[o.buffer].bytes)
        list.try_emplace(o.buffer.value, RowCounts{instr.in[counts], width * size_of(o.dtype)});
    };
    std::visit(
        Overloaded{
            [&](const instr::GroupedGemm& o) { rows(instr.in[0], o.k, 2), rows(instr.out[0], o.n, 2); },
            [&](const instr::GroupedOuter& o) { rows(instr.in[0], o.m, 2), rows(instr.in[1], o.n, 2); },
            [&](const instr::SwiGlu& o) {
              if (o.groups == 0) return;
              for (const Operand* x : {&instr.in[0], &instr.in[1], &instr.out[0]}) rows(*x, o.width, 2);
            },
            [&](const instr::SwiGluGrad& o) {
              if (o.groups == 0) return;
              for (std::size_t i = 0; i < 3; ++i) rows(instr.in[i], o.width, 3);
              for (const Operand& x : instr.out) rows(x, o.width, 3);
            },
            [](const auto&) {},
        },
        instr.op);
  }
  return list;
}

std::int64_t row_of_transfer(const InstrOp& op) {
  if (const auto* prefetch = std::get_if<instr::Prefetch>(&op)) return prefetch->row;
  if (const auto* store = std::get_if<instr::Store>(&op)) return store->row;
  return 0;
}

}  // namespace hyperrun

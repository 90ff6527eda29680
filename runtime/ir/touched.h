// The bytes of its operands that an instruction reads or writes. They may be fewer than Operand::bytes: rows
// of experts leave room unused, a lookup reads some rows of its table, a tile is a part of the rows.
//
// Estimates of time use these bytes; memory uses Operand::bytes.
#pragma once

#include "runtime/ir/program.h"

namespace hyperrun {

// The bytes of `operand` that `instr` reads, or with `write` writes, each counted once. `operand` must be a
// reference to an operand of `instr` itself, because its address tells which one it is.
Bytes touched(const Instr& instr, const Operand& operand, bool write, const Mesh& mesh);

// The bytes that a Prefetch or a Store moves.
inline Bytes moved_bytes(const Instr& instr) { return instr.in[0].bytes - instr.in[0].empty; }

}  // namespace hyperrun

// How many bytes of its operands an instruction goes through. It may be less than an operand has: rows of
// experts leave room empty, a lookup reads some rows of its table, a tile is a part of the rows.
//
// Every estimate of time goes by these bytes. Memory goes by Operand::bytes.
#pragma once

#include "runtime/ir/program.h"

namespace hyperrun {

// The bytes that `instr` reads of `operand`, or writes (`write`) to it, each counted once. `operand` is one
// of the instruction's own: its address tells which.
Bytes touched(const Instr& instr, const Operand& operand, bool write, const Mesh& mesh);

// The bytes of HBM, or of what lies beyond it, that a Prefetch or a Store moves.
inline Bytes moved_bytes(const Instr& instr) { return instr.in[0].bytes - instr.in[0].empty; }

}  // namespace hyperrun

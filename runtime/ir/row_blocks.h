// Finds instructions that treat each row by itself: row r of the output depends on row r of the inputs only.
// Such an instruction can be cut into tiles of rows (RowTile::blocks).
#pragma once

#include <cstdint>
#include <optional>

#include "runtime/ir/program.h"

namespace hyperrun {

// The operands of an instruction that have rows: one bit for each of Instr::in and Instr::out. The other
// inputs are used whole by each row (a product's weights); the other outputs are sums over rows (the gradient
// of a norm's weight).
struct ByRows {
  std::int64_t rows = 0;  // 0: any number, the neighbours' number holds
  std::uint32_t in = 0, out = 0;
  std::int64_t table = 0;  // in[1] is a table of this many rows, used again and again; 0: no table

  bool of_in(std::size_t i) const { return (in >> i & 1U) != 0; }
  bool of_out(std::size_t i) const { return (out >> i & 1U) != 0; }
};

// The rows of any instruction but a collective; nullopt if its rows depend on each other, or it is a tile
// already.
std::optional<ByRows> by_rows(const Instr& instr);

// Reduces the op to `part` of its `whole` rows.
void take_rows(InstrOp& op, std::int64_t part, std::int64_t whole);
// Makes the op add its sums over rows to their outputs instead of overwriting these.
void add_to_sums_over_rows(InstrOp& op);

// For an operand that is a tile of blocks of rows: the bytes of a row, and the begin of the tile's rows of a
// block.
inline Bytes row_bytes(const Operand& o) { return o.bytes / (o.tile.blocks * o.tile.rows); }
inline Bytes begin_of(const Operand& o, std::int64_t block) {
  return row_bytes(o) * (block % o.tile.blocks * o.tile.rows + o.tile.first_row());
}

// The number of blocks of a tile's instruction; 0: no operand has blocks.
std::int64_t blocks_of(const Instr& instr);

}  // namespace hyperrun

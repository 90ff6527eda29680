// Instructions that do the same to each row of what they read, and write the row that comes of it: they can
// be done to a part of the rows (RowTile::blocks) at a time.
#pragma once

#include <cstdint>
#include <optional>

#include "runtime/ir/program.h"

namespace hyperrun {

// Rows of operands, a bit an operand of Instr::in and Instr::out. All others are taken whole by each row, as
// a product's weights are, or summed over them, as a norm's weight's gradient is.
struct ByRows {
  std::int64_t rows = 0;  // 0: as many as its neighbours say
  std::uint32_t in = 0, out = 0;
  std::int64_t table = 0;  // of in[1] so many, that repeat; 0: in[1] is as the bits say

  bool of_in(std::size_t i) const { return (in >> i & 1U) != 0; }
  bool of_out(std::size_t i) const { return (out >> i & 1U) != 0; }
};

// Of all but collectives; nothing: rows meet in it, or it is a tile already.
std::optional<ByRows> by_rows(const Instr& instr);

// The op of `part` of its `whole` rows.
void take_rows(InstrOp& op, std::int64_t part, std::int64_t whole);
// What of it is summed over rows is added to what is there.
void add_to_sums_over_rows(InstrOp& op);

// Of an operand that is a tile of blocks of rows: a row's bytes, and where the tile's rows of a block begin.
inline Bytes row_bytes(const Operand& o) { return o.bytes / (o.tile.blocks * o.tile.rows); }
inline Bytes begin_of(const Operand& o, std::int64_t block) {
  return row_bytes(o) * (block % o.tile.blocks * o.tile.rows + o.tile.first_row());
}

// Blocks of rows that a tile's instruction is about; 0: it has none.
std::int64_t blocks_of(const Instr& instr);

}  // namespace hyperrun

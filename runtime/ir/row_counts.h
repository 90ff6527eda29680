// Which buffer says how many rows of experts another buffer holds.
//
// A buffer of rows has room for any routing (Operand::empty), and its rows lie one behind the other. Whoever
// copies the buffer needs its counts to copy the rows that there are, and no more.
#pragma once

#include <cstdint>
#include <map>

#include "runtime/ir/program.h"

namespace hyperrun {

struct RowCounts {
  Operand counts;        // i32, of any shape: their sum is the number of rows
  std::int64_t row = 0;  // bytes of one row
};

// All buffers of rows that products or activations of experts use, by number.
std::map<std::int32_t, RowCounts> counts_of_rows(const Program& program);

// Bytes of a row of experts that a Prefetch or a Store moves; 0: it moves all of its bytes.
std::int64_t row_of_transfer(const InstrOp& op);

}  // namespace hyperrun

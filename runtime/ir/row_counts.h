// Finds the counts that belong to each buffer of rows of experts.
//
// A buffer of rows has room for any routing (Operand::empty), and its rows are contiguous. A copy of the
// buffer needs the counts, to copy only the rows that exist.
#pragma once

#include <cstdint>
#include <map>

#include "runtime/ir/program.h"

namespace hyperrun {

struct RowCounts {
  Operand counts;        // i32 of any shape; their sum is the number of rows
  std::int64_t row = 0;  // bytes of one row
};

// All buffers of rows that products or activations of experts use, by buffer number.
std::map<std::int32_t, RowCounts> counts_of_rows(const Program& program);

// The bytes of one row of experts that a Prefetch or a Store moves; 0: it moves no rows of experts.
std::int64_t row_of_transfer(const InstrOp& op);

}  // namespace hyperrun

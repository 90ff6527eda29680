// Chains of instructions that can be done to a part of their rows at a time, collectives among them: what a
// product makes of some rows is exchanged while the next rows are multiplied, and what is gathered of some
// rows is multiplied while the next are gathered.
//
//   product -> reduce-scatter -> add -> norm -> all-gather -> products -> activation -> product -> ...
//
// A chain ends where rows meet: at attention, at experts, at a micro-batch's tokens and at messages between
// stages. Of a row there is the same number in a block on all devices: what a device has of gathered rows
// are some of the blocks.
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/ir/program.h"

namespace hyperrun {

// A stretch of a Program up to the next one or an end of chains, and which of its instructions can be done to
// parts of rows.
struct RowChain {
  struct Link {
    std::int32_t instr = 0;
    std::vector<std::int64_t> in, out;  // blocks of rows, of each operand; 0: taken whole
    bool operator==(const Link&) const = default;
  };
  std::int32_t begin = 0, end = 0;  // of instructions, all links among them
  std::vector<Link> links;          // by instruction
  std::vector<std::int64_t> rows;   // of a block, of each link
};

// Those with a product and a collective, which do not overlap; of different chains in one stretch all links.
std::vector<RowChain> row_chains(const Program& program);

// The instruction of one tile. `rows`: of a block.
Instr one_tile(Instr instr, const RowChain::Link& link, std::int64_t rows, const RowTile& tile);

}  // namespace hyperrun

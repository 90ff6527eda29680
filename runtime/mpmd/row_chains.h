// Chains of instructions, including collectives, that can process their rows in parts. The results of some
// rows are exchanged while the next rows are multiplied, and gathered rows are multiplied while the next are
// gathered.
//
//   product -> reduce-scatter -> add -> norm -> all-gather -> products -> activation -> product -> ...
//
// A chain ends at instructions that mix rows: attention, experts, the loading of tokens, and messages between
// stages. Gathered rows consist of blocks, one or more from each device; blocks have the same number of rows
// on all devices.
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/ir/program.h"

namespace hyperrun {

// A range of a Program, up to the next chain or an instruction that ends chains, and those of its
// instructions that can process rows in parts.
struct RowChain {
  struct Link {
    std::int32_t instr = 0;
    std::vector<std::int64_t> in, out;  // by operand: number of blocks of rows; 0: used whole
    bool operator==(const Link&) const = default;
  };
  std::int32_t begin = 0, end = 0;  // instructions
  std::vector<Link> links;          // in instruction order
  std::vector<std::int64_t> rows;   // by link: rows of a block
};

// All chains with a product and a collective. Chains that overlap are merged into one, so results are
// disjoint.
std::vector<RowChain> row_chains(const Program& program);

// The instruction for one tile. `rows`: of a block.
Instr one_tile(Instr instr, const RowChain::Link& link, std::int64_t rows, const RowTile& tile);

}  // namespace hyperrun

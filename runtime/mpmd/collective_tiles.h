// Overlaps collectives with the products that feed or follow them (docs/mpmd.md). Chains of instructions
// (row_chains.h) are cut into tiles of rows, so that one tile is exchanged while another is multiplied.
//
//   cube     product 0 | product 1 | product 2 | next product 0 | ...
//   comm               | reduce 0  | reduce 1  | reduce 2
//   vector                         | norm 0    | norm 1 ...
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/ir/machine.h"
#include "runtime/ir/program.h"

namespace hyperrun {

// The decisions for one Program.
struct CollectiveTiling {
  // The number of tiles of each of row_chains(program). A chain of 1 tile may still be reordered. Empty: the
  // Program stays unchanged.
  std::vector<std::int32_t> tiles;
  // The order of the instructions, numbered after cutting.
  std::vector<std::int32_t> order;
  bool operator==(const CollectiveTiling&) const = default;
};

// `tiles`: how many, at most one per row. 0: for each chain the number that makes it shortest, as estimated
// for `device` of the machine. Then chains that gain nothing stay whole, for example if their collectives
// already overlap with gradients of weights. The whole Program stays unchanged if tiles would raise the live
// peak above both `hbm` and the peak without tiles. `program` has neither offsets nor events.
CollectiveTiling plan_collective_tiles(const Program& program, std::int32_t tiles, const Machine& machine,
                                       int device, Bytes hbm);

// Cuts and reorders a Program; origins name the tile. `tiling` may have been planned for another Program with
// the same instructions.
void apply(Program& program, const CollectiveTiling& tiling);

}  // namespace hyperrun

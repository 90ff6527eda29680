// Collectives beside the products that feed or follow them (row_chains.h): chains of rows in tiles, in an
// order in which one tile is exchanged while another is multiplied (docs/mpmd.md).
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

// What was decided for a Program.
struct Chunking {
  std::vector<std::int32_t>
      tiles;  // of each of row_chains(program); 1: in another order at most. Empty: all stay as they are
  std::vector<std::int32_t>
      order;  // numbers of the instructions of the Program that is cut and not yet in order
  bool operator==(const Chunking&) const = default;
};

// `tiles`: into so many, as far as there are rows; 0: of each chain as many as make it shortest, as estimated
// for `device` of the machine, and none where nothing is gained: where what is exchanged hides already behind
// what does not depend on it, as gradients of weights. None either where more would live at once than is in
// `hbm` and than lives there without. The Program has neither places nor events.
Chunking plan_chunks(const Program& program, std::int32_t tiles, const Machine& machine, int device,
                     Bytes hbm);

// Makes it so; origins say which tile. `chunking` may have been planned for another Program of the same
// instructions.
void apply(Program& program, const Chunking& chunking);

}  // namespace hyperrun

// Layers of experts in tiles: the exchange of rows to the experts, the products, the activation and the
// exchange back become as many instructions as there are tiles, each of which waits for its own tile alone.
// While one is sent, another is computed (docs/mpmd.md).
//
//   comm     to 0 | to 1 | to 2 | back 0 | back 1 | back 2
//   vector          sort 0   sort 1   activate 0 ...
//   cube                  products 0 | products 1 | products 2
//
// Backwards the same, where gradients of weights are computed when those of activations, which the next
// exchange waits for, leave the cube free.
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/ir/machine.h"
#include "runtime/ir/program.h"

namespace hyperrun {

// What was decided for a Program: how many tiles, and in which order its instructions then are issued.
struct RowTiling {
  std::int32_t tiles = 1;  // 1: it stays as it is
  std::vector<std::int32_t>
      order;  // numbers of the instructions of the Program that is cut and not yet in order
  bool operator==(const RowTiling&) const = default;
};

// A Program has rows of experts that go between devices, and all that touches them can do with tiles of them.
bool can_be_cut(const Program& program);

// `tiles`: 0: as many as make the Program shortest, as estimated for `device` of the machine, 1 among them.
// Of a Program that cannot be cut: 1. The Program has neither places nor events.
RowTiling plan_tiles(const Program& program, std::int32_t tiles, const Machine& machine, int device);

// Makes it so; origins say which tile: "layers.3.experts.up.product[0/4]". `tiling` may have been planned for
// another Program of the same instructions.
void apply(Program& program, const RowTiling& tiling);

}  // namespace hyperrun

// Overlaps the exchanges of expert layers with their computation (docs/mpmd.md). The exchange of rows to the
// experts, the products, the activation and the exchange back are cut into tiles. Each instruction waits only
// for its own tile, so one tile is sent while another is computed.
//
//   comm     to 0 | to 1 | to 2 | back 0 | back 1 | back 2
//   vector          sort 0   sort 1   activate 0 ...
//   cube                  products 0 | products 1 | products 2
//
// The backward pass is tiled likewise. The next exchange waits for gradients of activations, so gradients of
// weights fill the time in which those leave the cube free.
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/ir/machine.h"
#include "runtime/ir/program.h"

namespace hyperrun {

// The decisions for one Program.
struct ExpertTiling {
  std::int32_t tiles = 1;           // 1: unchanged
  std::vector<std::int32_t> order;  // of the instructions, numbered after cutting
  bool operator==(const ExpertTiling&) const = default;
};

// The Program exchanges rows of experts between devices, and every instruction that touches them can be
// tiled.
bool can_be_cut(const Program& program);

// `tiles`: how many; 0: the number (possibly 1) that makes the Program shortest, as estimated for `device` of
// the machine. A Program that cannot be cut gets 1. `program` has neither offsets nor events.
ExpertTiling plan_expert_tiles(const Program& program, std::int32_t tiles, const Machine& machine,
                               int device);

// Cuts and reorders a Program. Origins name the tile: "layers.3.experts.up.product[0/4]". `tiling` may have
// been planned for another Program with the same instructions.
void apply(Program& program, const ExpertTiling& tiling);

}  // namespace hyperrun

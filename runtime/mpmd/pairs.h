// Passes beside each other: the backward pass of one micro-batch and the forward pass of a later one in one
// order, in which what one exchanges hides behind what the other computes (docs/mpmd.md).
//
//   cube     F product | B products | F product | B products | ...
//   comm               | F reduce   | B reduce  | F reduce   | ...
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/ir/machine.h"
#include "runtime/ir/program.h"

namespace hyperrun {

// In which order to do the instructions of a Program whose halves are marked (Instr::half) and that has
// neither places nor events. Each half keeps its own order: whatever is under way in one, not more than both
// together lives at once. What a stream of `device` would begin first comes first; a pair that would not get
// shorter, as estimated, stays one half after the other. Empty: all stays as it is.
std::vector<std::int32_t> plan_pairs(const Program& program, const Machine& machine, int device);

// Makes it so, and takes the marks away. `order` may have been planned for another Program of the same
// instructions.
void apply_pairs(Program& program, const std::vector<std::int32_t>& order);

}  // namespace hyperrun

// Paired passes: the backward pass of one micro-batch alternates with the forward pass of a later one, so
// that the collectives of one overlap with the computation of the other (docs/mpmd.md).
//
//   cube     F product | B products | F product | B products | ...
//   comm               | F reduce   | B reduce  | F reduce   | ...
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/ir/machine.h"
#include "runtime/ir/program.h"

namespace hyperrun {

// The order of instructions of a Program with marked halves (Instr::half), without offsets and events. Each
// half keeps its own order, so at any time no more is live than in both halves together. The instruction that
// can begin first on `device` comes first. A pair that would not get shorter, as estimated, keeps one half
// behind the other. Empty: the order stays unchanged.
std::vector<std::int32_t> plan_pairs(const Program& program, const Machine& machine, int device);

// Reorders a Program and removes the marks. `order` may have been planned for another Program with the same
// instructions.
void apply_pairs(Program& program, const std::vector<std::int32_t>& order);

}  // namespace hyperrun

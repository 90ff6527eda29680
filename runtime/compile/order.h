#pragma once

#include "runtime/ir/program.h"

namespace hyperrun {

// Starts each collective of the update as soon as its input is complete: gradients are then exchanged
// while the rest of the backward pass computes. The relative order of all else stays.
void start_collectives_early(Program& program);

}  // namespace hyperrun

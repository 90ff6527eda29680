#pragma once

#include "runtime/ir/program.h"

namespace hyperrun {

// Moves collectives forward, so that they run while something is computed:
//   - A collective of the update (instruction `update` and later), and the rounding before it, starts as soon
//     as its input is complete. Gradients are then exchanged during the rest of the backward pass, but not
//     before the last message to another stage.
//   - A collective of the passes that completes sums starts before the next product after its input is ready.
//     The gradient of a product's input is then exchanged while that of its weight is computed.
// All other instructions keep their order. Gathers of the backward pass stay late, to save memory.
void start_collectives_early(Program& program, std::size_t update);

// Delays adding an exchanged gradient to its sum until a later one is exchanged, or until the update. The
// exchange then has the time of the products in between, and the vector stream does not wait for it.
void add_exchanged_gradients_late(Program& program, std::size_t update);

// Starts each collective that gathers a weight (before instruction `update`) when the previous one would have
// started: while products use one weight, the next is gathered. One more gathered weight is live.
void prefetch_weights(Program& program, std::size_t update);

}  // namespace hyperrun

#pragma once

#include "runtime/ir/program.h"

namespace hyperrun {

// Starts each collective of the update (instruction `update` and on) as soon as its input is complete, which
// is rounded as soon as that is, where it is: gradients are then exchanged while the rest of the backward
// pass computes, but behind the last message to another stage. One before the update that completes sums
// starts before the product that follows on what it sums: the gradient of a product's input is exchanged
// while that of its weight is computed. All else keeps its order; gathers of the backward pass stay late, for
// the sake of memory.
void start_collectives_early(Program& program, std::size_t update);

// Adds a gradient that was exchanged to its sum when the next one is, or at the update: the exchange has had
// the time of the products in between, for which the vector stream does not wait.
void add_exchanged_gradients_late(Program& program, std::size_t update);

// Starts the collective that gathers a weight (instructions before `update`) when the one before it would
// have started: while products use one weight, the next is on its way. Holds one gathered weight more.
void prefetch_weights(Program& program, std::size_t update);

}  // namespace hyperrun

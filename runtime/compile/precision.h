// Decides which tensors of a step are bfloat16.
//
// These stay float32:
//   - weights, the optimizer's state and gradients of weights;
//   - sums over a row or a token: squares and dots of a norm, lse of attention, maxima, sums and log
//     probabilities of the loss;
//   - logits and gates of routing, with their gradients, and logits that are sampled from.
// All other activations and their gradients are stored and sent in bfloat16; so are the cache of a generation
// and ports. Products and norms use a bfloat16 copy of each weight. The copy is made once a step in the
// layout of the master (op::Cast), so that gathers of weights move bfloat16.
#pragma once

#include "runtime/ir/graph.h"

namespace hyperrun {

// Changes the graph of a whole training or generation, not yet sharded, to bfloat16.
void to_bfloat16(Graph& graph);

// The same for a generation alone: weights of products are bfloat16 themselves, and there are no copies.
void weights_to_bfloat16(Graph& graph);

}  // namespace hyperrun

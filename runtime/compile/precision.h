// Which tensors of a step are bfloat16.
//
// Float32 stay: weights, the optimizer's state and gradients of weights; what sums up a row or a token
// (squares and dots of a norm, lse of attention, maxima, sums and log probabilities of the loss); what is
// routed (logits, gates and their gradients) and logits that are sampled from. All other activations and
// their gradients become bfloat16, stored and sent, and so do the cache of a generation and ports. Products
// and norms take a copy of each weight, cast where its master lies (op::Cast, once a step): what is gathered
// of it is bfloat16.
#pragma once

#include "runtime/ir/graph.h"

namespace hyperrun {

// `graph`: of a whole training or generation, not yet sharded.
void to_bfloat16(Graph& graph);

// Of a generation alone: weights themselves are bfloat16 where products take them, and nothing is copied.
void weights_to_bfloat16(Graph& graph);

}  // namespace hyperrun

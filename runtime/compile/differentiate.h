// Reverse-mode differentiation: appends the backward nodes of a Graph, and its optimizer.
#pragma once

#include <utility>
#include <vector>

#include "runtime/ir/graph.h"

namespace hyperrun {

// A weight and the tensor that holds its gradient.
using WeightGradient = std::pair<TensorId, TensorId>;

// Appends to `graph` the nodes (kBackward) that compute the gradient of its output "loss" with respect
// to every weight. Gradients of weights are accumulated over micro-batches. Where the graph stores to a port,
// the gradient of that comes from a port called as it with ".grad" behind; where it loads one, its gradient
// is stored to such a port.
std::vector<WeightGradient> differentiate(Graph& graph);

// Appends (kUpdate) the global gradient norm, clipping and AdamW (Loshchilov, Hutter 2019) on every
// weight; its moments are new state. Weights of one dimension are not decayed. Adds the output
// "grad_norm".
void add_optimizer(Graph& graph, const std::vector<WeightGradient>& gradients, const TrainingSpec& training);

}  // namespace hyperrun

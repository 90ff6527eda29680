// Reverse-mode differentiation: appends the backward pass and the optimizer to a Graph.
#pragma once

#include <utility>
#include <vector>

#include "runtime/ir/graph.h"

namespace hyperrun {

// A weight and the tensor that holds its gradient.
using WeightGradient = std::pair<TensorId, TensorId>;

// Appends to `graph` the nodes (kBackward) that compute the gradient of its output "loss" with respect to
// every weight. Gradients of weights are accumulated over micro-batches. Each port gets a second one with the
// name plus ".grad". The gradient of a stored port is loaded from it; the gradient of a loaded port is stored
// to it.
std::vector<WeightGradient> differentiate(Graph& graph);

// Appends the update (kUpdate): the global gradient norm, clipping, and AdamW (Loshchilov, Hutter 2019) on
// every weight, whose moments are new state. Weights of one dimension are not decayed. Adds the output
// "grad_norm".
void add_optimizer(Graph& graph, const std::vector<WeightGradient>& gradients, const TrainingSpec& training);

}  // namespace hyperrun

// Cuts one Graph into one for each device on a pipeline's axis.
//
//   - A forward or backward node goes to the stage with its layer; other nodes go where their inputs are.
//   - A tensor that another device uses is sent there once, by a Send and a Recv of the same tensor.
//   - A weight that several devices use belongs to the first of them. Gradients are sent to it and added;
//   each
//     new value is sent to the others.
//   - The norm of all gradients is a partial sum over the axis; runtime/shard has made it so.
#pragma once

#include <vector>

#include "runtime/ir/graph.h"

namespace hyperrun {

// One graph for each device on the pipeline's axis, all with the same tensors; without a pipeline only
// `graph`.
std::vector<Graph> partition(const Graph& graph, const Mesh& mesh, const PipelineSpec& pipeline);

}  // namespace hyperrun

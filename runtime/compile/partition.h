// From one Graph to one for each stage device of a pipeline.
//
// A forward or backward node goes to the stage that has its layer; the others follow from what they use. A
// tensor that is used on another device than it is made on is sent there, once (Send, Recv: one tensor on
// both). Weights that several devices use belong to the first: gradients are sent there and added, and each
// new value is sent to the others. Norms of all gradients are partial sums over the axis (runtime/shard makes
// them so).
#pragma once

#include <vector>

#include "runtime/ir/graph.h"

namespace hyperrun {

// One graph for each device on the pipeline's axis, of the same tensors; without a pipeline the graph itself.
std::vector<Graph> partition(const Graph& graph, const Mesh& mesh, const PipelineSpec& pipeline);

}  // namespace hyperrun

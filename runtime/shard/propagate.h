// HyperShard: gives every tensor of a graph a layout and inserts redistributions between layouts.
//
// Nodes are processed in graph order. Each mesh axis is assigned to one of the operator's dimensions or to
// none. Of all assignments the best is chosen by these criteria, in this order:
//   1. Declared state and gradients keep their layouts.
//   2. As many axes as split the operands split the work.
//   3. The fewest bytes move.
// Data, tensor and sequence parallelism, gradient synchronisation and ZeRO-1 all follow from declared
// layouts.
#pragma once

#include "runtime/ir/graph.h"
#include "runtime/shard/rules.h"

namespace hyperrun {

// Returns the graph with layouts, collectives and slices. Throws kBadLayout (see declare_layouts).
Graph shard(const Graph& graph, const Mesh& mesh, const ParallelSpec& parallel,
            Rules strictness = Rules::kAllMustApply);

}  // namespace hyperrun

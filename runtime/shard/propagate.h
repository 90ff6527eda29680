// HyperShard: gives every tensor of a Graph a layout and inserts the redistributions between them.
//
// Node by node in graph order, each mesh axis is put on one of the operator's dimensions or on none. The
// choice, in this order: leave declared state and gradients where they lie; split the work over as many
// axes as the operands are split over; move the fewest bytes. Data, tensor and sequence parallelism,
// their gradient synchronisation and ZeRO-1 all come out of the declared layouts alone.
#pragma once

#include "runtime/ir/graph.h"
#include "runtime/shard/rules.h"

namespace hyperrun {

// Returns the graph with layouts, collectives and slices. Throws kBadLayout (see declare_layouts).
Graph shard(const Graph& graph, const Mesh& mesh, const ParallelSpec& parallel,
            Rules strictness = Rules::kAllMustApply);

}  // namespace hyperrun

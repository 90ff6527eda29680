#pragma once

#include <vector>

#include "runtime/ir/graph.h"

namespace hyperrun {

// A cache does not move, and no port. Of `options`, the dimensions on which `axis` might split the node, are
// left: the one on which it splits a cache that is an input; if it splits none, those that no cache has.
void keep_cache(const Graph& graph, const Node& node, AxisId axis, std::vector<DimId>& options);

}  // namespace hyperrun

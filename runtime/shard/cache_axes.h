// Caches and ports keep their layouts in sharding.
#pragma once

#include <vector>

#include "runtime/ir/graph.h"

namespace hyperrun {

// Restricts the choice of a dimension so that caches and ports are never redistributed. `options` are the
// dimensions that `axis` might split in a node. If `axis` splits an input that is a cache, only that
// dimension is left; otherwise all dimensions of caches are removed.
void keep_cache(const Graph& graph, const Node& node, AxisId axis, std::vector<DimId>& options);

}  // namespace hyperrun

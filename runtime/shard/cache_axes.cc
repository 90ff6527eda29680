#include "runtime/shard/cache_axes.h"

#include <algorithm>

namespace hyperrun {

void keep_cache(const Graph& graph, const Node& node, AxisId axis, std::vector<DimId>& options) {
  for (const TensorId t : node.inputs) {
    if (graph[t].cls != TensorClass::kCache && graph[t].cls != TensorClass::kPort) continue;
    const auto& dims = graph[t].dims;
    const int at = graph.layouts[t.index()].dim_of(axis);
    if (at >= 0)
      options = {dims[static_cast<std::size_t>(at)]};
    else
      std::erase_if(options, [&](DimId d) { return std::ranges::find(dims, d) != dims.end(); });
  }
}

}  // namespace hyperrun

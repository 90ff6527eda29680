#include "runtime/forecast/layouts_table.h"

#include <fmt/core.h>

#include <map>
#include <vector>

#include "runtime/base/joined.h"
#include "runtime/forecast/redistributions.h"
#include "runtime/ir/describe_layout.h"
#include "runtime/report/table.h"

namespace hyperrun {
namespace {

// The shape of a tensor: "batch=4 seq=128 bf16". The type is named only if it is not float32.
std::string describe_shape(const Graph& graph, TensorId t) {
  std::vector<std::string> dims;
  for (DimId d : graph[t].dims) dims.push_back(fmt::format("{}={}", graph[d].name, graph[d].size));
  if (graph[t].dtype == DType::kBF16) dims.emplace_back("bf16");
  return dims.empty() ? "scalar" : joined(dims, " ");
}

}  // namespace

std::string layouts_table(const Graph& graph, const Mesh& mesh) {
  Table table({left("tensor"), left("shape"), left("layout"), right("count")});
  std::vector<std::vector<std::string>> rows;
  std::map<std::vector<std::string>, int> counts;
  for (const Node& node : graph.nodes)
    for (TensorId t : node.outputs) {
      if (graph[t].updates.valid() || graph[t].cls == TensorClass::kExchanged) continue;
      std::vector<std::string> row{without_numbers(graph[t].name), describe_shape(graph, t),
                                   describe_layout(graph, t, mesh)};
      if (counts[row]++ == 0) rows.push_back(row);
    }
  for (const std::vector<std::string>& row : rows)
    table.row({row[0], row[1], row[2], fmt::format("{}", counts[row])});
  return table.str("  ");
}

}  // namespace hyperrun

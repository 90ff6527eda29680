#include <string_view>
#include <unordered_set>

#include "runtime/base/error.h"
#include "runtime/ir/graph.h"

namespace hyperrun {
namespace {

void verify_defined(const Graph& graph, const std::vector<bool>& defined, const Node& node, TensorId t) {
  HR_CHECK(t.valid() && t.index() < graph.tensors.size(), node.name);
  HR_CHECK(defined[t.index()] || is_state(graph[t].cls),
           node.name + " uses " + graph[t].name + " before it is defined");
}

// Names must be unique, because reports and Program::origins identify an instruction by its node's name.
void verify_names(const Graph& graph) {
  std::unordered_set<std::string_view> seen;
  seen.reserve(graph.nodes.size());
  for (const Node& node : graph.nodes)
    HR_CHECK(seen.insert(node.name).second, "two nodes are called " + node.name);
}

void verify_layouts(const Graph& graph) {
  HR_CHECK(graph.layouts.size() == graph.tensors.size());
  for (std::size_t i = 0; i < graph.tensors.size(); ++i) {
    const Layout& layout = graph.layouts[i];
    HR_CHECK(layout.dims.size() == graph.tensors[i].dims.size(), graph.tensors[i].name);
    AxisSet seen = layout.partial;
    for (const AxisList& axes : layout.dims)
      for (AxisId a : axes) {
        HR_CHECK(!seen.has(a), graph.tensors[i].name + " uses a mesh axis twice");
        seen.add(a);
      }
  }
}

}  // namespace

void verify(const Graph& graph) {
  std::vector<bool> defined(graph.tensors.size(), false);
  for (const Node& node : graph.nodes) {
    for (TensorId t : node.inputs) verify_defined(graph, defined, node, t);
    if (node.addend.valid()) verify_defined(graph, defined, node, node.addend);
    for (TensorId t : node.outputs) {
      HR_CHECK(!defined[t.index()], graph[t].name + " is defined twice");
      defined[t.index()] = true;
    }
  }
  verify_names(graph);
  for (const auto& [label, t] : graph.outputs) HR_CHECK(defined[t.index()], label);
  if (!graph.layouts.empty()) verify_layouts(graph);
}

}  // namespace hyperrun

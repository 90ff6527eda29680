#include <fmt/core.h>

#include <sstream>

#include "runtime/ir/graph.h"

namespace hyperrun {
namespace {

constexpr std::string_view kPhases[] = {"init", "begin", "forward", "backward", "update"};

std::string describe(const Graph& graph, const Mesh& mesh, TensorId t) {
  std::string text = graph[t].name + "[";
  for (std::size_t d = 0; d < graph[t].dims.size(); ++d) {
    const Dim& dim = graph[graph[t].dims[d]];
    text += fmt::format("{}{}={}", d ? ", " : "", dim.name, dim.size);
    if (dim.padding > 0) text += fmt::format(" padding {}", dim.padding);
    if (dim.ring > 1) text += fmt::format(" zigzag {}", dim.ring);
  }
  text += "]";
  if (graph[t].dtype == DType::kBF16) text += " bf16";
  if (!graph.layouts.empty()) text += " @ " + to_string(graph.layouts[t.index()], mesh);
  return text;
}

}  // namespace

std::string print(const Graph& graph, const Mesh& mesh) {
  std::ostringstream out;
  for (const Node& node : graph.nodes) {
    out << kPhases[static_cast<std::size_t>(node.phase)] << ' ' << node.name << " = " << name(node.op) << '(';
    for (std::size_t i = 0; i < node.inputs.size(); ++i) out << (i ? ", " : "") << graph[node.inputs[i]].name;
    if (node.addend.valid()) out << " + " << graph[node.addend].name;
    out << ")\n";
    for (TensorId t : node.outputs) out << "    -> " << describe(graph, mesh, t) << '\n';
  }
  return out.str();
}

}  // namespace hyperrun

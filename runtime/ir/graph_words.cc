#include "runtime/ir/graph_words.h"

namespace hyperrun {

std::string layout_words(const Graph& graph, TensorId t, const Mesh& mesh) {
  const Layout& layout = graph.layouts[t.index()];
  std::string words;
  const auto add = [&](const std::string& part) { words += (words.empty() ? "" : ", ") + part; };
  for (std::size_t d = 0; d < layout.dims.size(); ++d)
    if (!layout.dims[d].empty()) add(graph[graph[t].dims[d]].name + ":" + mesh.to_string(layout.dims[d]));
  if (!layout.partial.empty()) add("partial:" + mesh.to_string(mesh.list(layout.partial)));
  return words.empty() ? "replicated" : words;
}

}  // namespace hyperrun

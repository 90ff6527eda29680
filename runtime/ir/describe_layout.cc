#include "runtime/ir/describe_layout.h"

namespace hyperrun {
namespace {

// The layout of `t` in words, without the parts that `other` has as well.
std::string describe_beyond(const Graph& graph, TensorId t, const Mesh& mesh, const Layout& other) {
  const Layout& layout = graph.layouts[t.index()];
  std::string words;
  const auto add = [&](const std::string& part) { words += (words.empty() ? "" : ", ") + part; };
  for (std::size_t d = 0; d < layout.dims.size(); ++d)
    if (!layout.dims[d].empty() && layout.dims[d] != other.dims[d])
      add(graph[graph[t].dims[d]].name + ":" + mesh.to_string(layout.dims[d]));
  if (!layout.partial.empty() && layout.partial != other.partial)
    add("partial:" + mesh.to_string(mesh.list(layout.partial)));
  return words;
}

}  // namespace

std::string describe_layout(const Graph& graph, TensorId t, const Mesh& mesh) {
  const std::string words = describe_beyond(graph, t, mesh, Layout::replicated(graph[t].dims.size()));
  return words.empty() ? "replicated" : words;
}

std::string describe_change(const Graph& graph, TensorId from, TensorId to, const Mesh& mesh) {
  const auto side = [&](TensorId t, TensorId other) {
    const std::string words = describe_beyond(graph, t, mesh, graph.layouts[other.index()]);
    return words.empty() ? "whole" : words;
  };
  return side(from, to) + " -> " + side(to, from);
}

}  // namespace hyperrun

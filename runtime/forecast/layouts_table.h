#pragma once

#include <string>

#include "runtime/ir/graph.h"

namespace hyperrun {

// A table of every tensor of a sharded graph: its shape, and which axes split it. Equal tensors of different
// layers share a row.
std::string layouts_table(const Graph& graph, const Mesh& mesh);

}  // namespace hyperrun

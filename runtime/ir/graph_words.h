// Tensors of a sharded graph in the words that users know: names of dimensions and of mesh axes.
#pragma once

#include <string>

#include "runtime/ir/graph.h"

namespace hyperrun {

// "batch:dp, seq:tp+cp, partial:tpx": what splits which dimension, and over which axes parts of sums lie;
// "replicated" where neither.
std::string layout_words(const Graph& graph, TensorId t, const Mesh& mesh);

}  // namespace hyperrun

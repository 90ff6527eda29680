// Tensors of a sharded graph in the words that users know: names of dimensions and of mesh axes.
#pragma once

#include <string>

#include "runtime/ir/graph.h"

namespace hyperrun {

// "batch:dp, seq:tp+cp, partial:tpx": what splits which dimension, and over which axes parts of sums lie;
// "replicated" where neither.
std::string layout_words(const Graph& graph, TensorId t, const Mesh& mesh);

// Of two tensors of the same dimensions, of these only those that lie otherwise: "partial:tp -> seq:tp";
// "whole" where none is split.
std::string change_words(const Graph& graph, TensorId from, TensorId to, const Mesh& mesh);

}  // namespace hyperrun

// Describes layouts of a sharded graph in words that users know: names of dimensions and of mesh axes.
#pragma once

#include <string>

#include "runtime/ir/graph.h"

namespace hyperrun {

// "batch:dp, seq:tp+cp, partial:tpx": the axes that split each dimension, and those over which the tensor is
// a partial sum; "replicated" if there are none.
std::string describe_layout(const Graph& graph, TensorId t, const Mesh& mesh);

// The difference of two layouts of a tensor, without the dimensions that are split alike: "partial:tp ->
// seq:tp". A side without splits is "whole".
std::string describe_change(const Graph& graph, TensorId from, TensorId to, const Mesh& mesh);

}  // namespace hyperrun

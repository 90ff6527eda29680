// Redistribution: the cheapest sequence of collectives and slices from one layout of a tensor to another.
#pragma once

#include <vector>

#include "runtime/ir/graph.h"

namespace hyperrun {

struct RedistributionStep {
  GraphOp op;  // AllReduce, ReduceScatter, AllGather, AllToAll or Slice
  Layout after;
  Bytes wire{};  // sent by one device
};

// The cost of a sequence is the bytes that one device sends, then the number of steps. The search never fails
// if both layouts divide the tensor, which the caller checks.
//
// `shape` is global. `element`: bytes of one element. `unshared`: axes whose devices have different tensors
// (pipeline stages); no step may split along them. `expanded`, if given, is set to the number of layouts that
// were expanded.
std::vector<RedistributionStep> redistribute(const std::vector<std::int64_t>& shape, std::int64_t element,
                                             const Layout& from, const Layout& to, const Mesh& mesh,
                                             AxisSet unshared = {}, std::size_t* expanded = nullptr);

Bytes wire_bytes(const std::vector<RedistributionStep>& steps);

}  // namespace hyperrun

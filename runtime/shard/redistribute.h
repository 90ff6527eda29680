// From one layout of a tensor to another: the cheapest sequence of collectives and slices.
#pragma once

#include <vector>

#include "runtime/ir/graph.h"

namespace hyperrun {

struct RedistributionStep {
  GraphOp op;  // AllReduce, ReduceScatter, AllGather, AllToAll or Slice
  Layout after;
  Bytes wire{};  // that one device sends
};

// Uniform-cost search over the reachable layouts; cost is the bytes that one device sends, then the
// number of steps. Never fails: a dimension that is to be split must divide (checked by the caller).
// `shape` is global; `element` the bytes of one element.
std::vector<RedistributionStep> redistribute(const std::vector<std::int64_t>& shape, std::int64_t element,
                                             const Layout& from, const Layout& to, const Mesh& mesh);

Bytes wire_bytes(const std::vector<RedistributionStep>& steps);

}  // namespace hyperrun

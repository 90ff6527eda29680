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
// `shape` is global; `element` the bytes of one element. `apart`: axes whose devices do not have the tensor
// in common (a pipeline's stages), so that no way may lead over a split along them.
std::vector<RedistributionStep> redistribute(const std::vector<std::int64_t>& shape, std::int64_t element,
                                             const Layout& from, const Layout& to, const Mesh& mesh,
                                             AxisSet apart = {});

Bytes wire_bytes(const std::vector<RedistributionStep>& steps);

}  // namespace hyperrun

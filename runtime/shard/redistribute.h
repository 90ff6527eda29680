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

// The best way over the reachable layouts; cost is the bytes that one device sends, then the number of steps.
// Never fails: `from` divides, and so must `to` (checked by the caller).
// `shape` is global; `element` the bytes of one element. `apart`: axes whose devices do not have the tensor
// in common (a pipeline's stages), so that no way may lead over a split along them. `expanded`, if given, is
// told how many layouts the search has gone on from.
std::vector<RedistributionStep> redistribute(const std::vector<std::int64_t>& shape, std::int64_t element,
                                             const Layout& from, const Layout& to, const Mesh& mesh,
                                             AxisSet apart = {}, std::size_t* expanded = nullptr);

Bytes wire_bytes(const std::vector<RedistributionStep>& steps);

}  // namespace hyperrun

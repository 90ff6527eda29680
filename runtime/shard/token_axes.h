// The layout of the tokens: which mesh axes split which of their dimensions, and in which order. All tensors
// computed from tokens follow it.
#pragma once

#include <map>
#include <vector>

#include "runtime/ir/graph.h"
#include "runtime/shard/rules.h"

namespace hyperrun {

class TokenAxes {
 public:
  TokenAxes(const Graph& graph, const std::vector<Declaration>& declared);

  DimId dim_of(AxisId a) const;  // the dimension that it splits; invalid: none

  // Sorts the axes of a dimension in the order of the tokens, so that all tensors agree. Returns false,
  // without a change, if the tokens are not split by all of them there.
  bool order(DimId dim, AxisList& axes) const;

 private:
  std::map<AxisId, DimId> dims_;
  std::map<DimId, AxisList> axes_;  // major first
};

}  // namespace hyperrun

// How the data lies: which mesh axes split the tokens, in which of their dimensions and in which order.
// Everything that follows from the tokens keeps to it.
#pragma once

#include <map>
#include <vector>

#include "runtime/ir/graph.h"
#include "runtime/shard/rules.h"

namespace hyperrun {

class TokenAxes {
 public:
  TokenAxes(const Graph& graph, const std::vector<Declaration>& declared);

  DimId home(AxisId a) const;  // that it splits; invalid: none

  // Brings axes on a dimension into the data's order, so that all tensors of tokens agree. False where the
  // data does not have all of them there: nothing is changed then.
  bool order(DimId dim, AxisList& axes) const;

 private:
  std::map<AxisId, DimId> home_;
  std::map<DimId, AxisList> axes_;  // major first
};

}  // namespace hyperrun

// The sharding rule of each operator, over the named dimensions of its operands (its einsum factors).
// Splitting a dimension over a mesh axis is legal unless the rule says that the operator needs it whole.
// An output that lacks a split dimension holds partial results over that axis.
#pragma once

#include <vector>

#include "runtime/ir/graph.h"

namespace hyperrun {

struct OperatorRule {
  std::vector<DimId> whole;    // may not be split
  std::vector<DimId> instead;  // where an axis that splits a whole dimension may go
  DimId ring;  // one of the whole that the axes of a ring (declared of the result) split all the same
  std::vector<int> as_it_lies;       // inputs that are taken in whatever layout (partial included) they have
  std::vector<Reduction> reduction;  // of partial results, per output; empty: all kSum
  int partial_from = -1;             // the outputs are partial where this input is; -1: none
};

OperatorRule operator_rule(const Graph& graph, const Node& node);

}  // namespace hyperrun

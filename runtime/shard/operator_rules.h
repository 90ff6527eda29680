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
  TensorId back_to;            // or the tensor that says where: rows go back to where they have come from
  DimId ring;  // one of the whole that the axes of a ring (declared of the result) split all the same
  // Inputs that are relative to each device's own part, where they are partial: taken partial as they are,
  // and the axes over which they are stay where these inputs have them.
  std::vector<int> as_it_lies;
  std::vector<Reduction> reduction;  // of partial results, per output; empty: all kSum
  std::vector<int> own;  // outputs that are relative to a device's own part: where the operator leaves
                         // partial results, these have no whole
  TensorId rows;  // counts of the rows between which and tokens it goes: tokens are not split over axes that
                  // split the experts in their width
  // Of each output the input that it is partial with, as it is linear in that; -1 or missing: none.
  std::vector<int> partial_from;
};

OperatorRule operator_rule(const Graph& graph, const Node& node);

}  // namespace hyperrun

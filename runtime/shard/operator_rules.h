// Sharding rules: how mesh axes may split each operator, by the named dimensions of its operands (as in an
// einsum). Any dimension may be split unless the rule says that it must be replicated. An output without a
// dimension that is split holds partial results over the axis.
//
//   x[batch, hidden] w[hidden, ffn] -> y[batch, ffn]
//   hidden split over tp: y is a partial sum over tp
#pragma once

#include <vector>

#include "runtime/ir/graph.h"

namespace hyperrun {

struct OperatorRule {
  // Dimensions that may not be split.
  std::vector<DimId> must_replicate;
  // Dimensions that take over an axis which splits a dimension of must_replicate.
  std::vector<DimId> redirect_to;
  // Alternative to redirect_to: the axis goes where it splits this tensor. Rows return to their tokens so.
  TensorId redirect_like;
  // A dimension of must_replicate that the axes of a ring may split. The result's declared layout names them.
  DimId ring_dim;
  // Inputs that are taken as partial results, without an all-reduce, if they are partial. They are relative
  // to each device's own part, or the operator is linear in them. Their partial axes also keep the dimensions
  // that they split in these inputs.
  std::vector<int> keep_partial;
  // How partial results are reduced, by output; empty: all kSum.
  std::vector<Reduction> reduction;
  // Outputs relative to each device's own part. If the operator leaves partial results, these have no global
  // value.
  std::vector<int> local_outputs;
  // Counts of the rows that the operator exchanges with tokens. Axes that split the width of experts do not
  // split tokens then.
  TensorId row_counts;
  // An input in which the operator is linear, so that the output is partial like it, by output; -1 or
  // missing: none.
  std::vector<int> linear_in;
};

OperatorRule operator_rule(const Graph& graph, const Node& node);

}  // namespace hyperrun

#include "runtime/shard/idle_axes.h"

#include <variant>

namespace hyperrun {
namespace {

bool is_product(const GraphOp& o) {
  return std::holds_alternative<op::Matmul>(o) || std::holds_alternative<op::Attention>(o) ||
         std::holds_alternative<op::AttentionStep>(o);
}

// Splitting a product leaves a partial result or a split one, so its output layout names every axis that
// splits it.
AxisSet splits_products(const Graph& training) {
  AxisSet axes;
  for (const Node& node : training.nodes)
    if (node.phase == Phase::kForward && is_product(node.op))
      axes = axes | training.layouts[node.outputs.front().index()].used();
  return axes;
}

}  // namespace

AxisSet idle_axes(const Graph& training, const Mesh& mesh) {
  const AxisSet busy = splits_products(training);
  AxisSet idle;
  for (AxisId a = 0; a < mesh.rank(); ++a)
    if (mesh.size(a) > 1 && !busy.has(a)) idle.add(a);
  return idle;
}

}  // namespace hyperrun

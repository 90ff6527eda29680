#include "runtime/shard/operand_layouts.h"

#include <algorithm>

namespace hyperrun {

Layout OperandLayouts::input(const TensorOperand& o, const Assignment& assignment) const {
  Layout layout = split(o.tensor, assignment);
  if (!o.keep_partial) return layout;
  layout.partial = o.layout->partial;
  layout.reduction = o.layout->reduction;
  return layout;
}

bool OperandLayouts::is_split_like_input(const TensorOperand& o, const Assignment& assignment) const {
  const std::vector<DimId>& dims = graph_[o.tensor].dims;
  for (std::size_t d = 0; d < dims.size(); ++d) {
    const auto axes = assignment.find(dims[d]);
    if (axes == assignment.end() ? !o.layout->dims[d].empty() : o.layout->dims[d] != axes->second)
      return false;
  }
  return true;
}

Layout OperandLayouts::output(const Node& node, const OperatorRule& rule, const TensorOperand& o,
                              const Assignment& assignment) const {
  Layout layout = split(o.tensor, assignment);
  for (const auto& [dim, axes] : assignment) {
    const bool of_inputs = std::any_of(node.inputs.begin(), node.inputs.end(),
                                       [&, dim = dim](TensorId t) { return graph_.has_dim(t, dim); });
    if (of_inputs && !graph_.has_dim(o.tensor, dim)) layout.partial = layout.partial | set_of(axes);
  }
  if (o.index < rule.linear_in.size() && rule.linear_in[o.index] >= 0)
    layout.partial =
        layout.partial |
        graph_.layouts[node.inputs[static_cast<std::size_t>(rule.linear_in[o.index])].index()].partial;
  if (!layout.partial.empty() && o.index < rule.reduction.size()) layout.reduction = rule.reduction[o.index];
  return layout;
}

Layout OperandLayouts::wanted(TensorId t, const Layout& declared, const Layout& natural) const {
  Layout want = declared;
  const TensorClass cls = graph_[t].cls;
  if (cls == TensorClass::kGradient) {
    if (!completed_.empty() && completed_.contains(weight_of(graph_, t))) return want;
    const AxisSet split = want.split_axes();
    for (AxisId a : mesh_.list(natural.partial))
      if (!split.has(a)) want.partial.add(a);
  } else if (!is_state(cls) && cls != TensorClass::kCopy) {
    const AxisSet named = want.split_axes();
    for (std::size_t d = 0; d < want.dims.size(); ++d) {
      AxisList kept = natural.dims[d];
      kept.erase_if([&](AxisId a) { return named.has(a); });
      const std::int64_t left = graph_[graph_[t].dims[d]].size / mesh_.size(want.dims[d]);
      while (left % mesh_.size(kept) != 0) kept.pop_back();
      kept.append(want.dims[d]);
      want.dims[d] = kept;
      tokens_.order(graph_[t].dims[d], want.dims[d]);
    }
  }
  return want;
}

Layout OperandLayouts::split(TensorId t, const Assignment& assignment) const {
  const std::vector<DimId>& dims = graph_[t].dims;
  Layout layout = Layout::replicated(dims.size());
  for (std::size_t d = 0; d < dims.size(); ++d) {
    const auto it = assignment.find(dims[d]);
    if (it != assignment.end()) layout.dims[d] = it->second;
  }
  return layout;
}

std::string weight_of(const Graph& graph, TensorId gradient) {
  const std::string& name = graph[gradient].name;
  return name.substr(0, name.rfind('.'));
}

}  // namespace hyperrun

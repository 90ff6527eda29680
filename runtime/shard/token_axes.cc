#include "runtime/shard/token_axes.h"

#include <algorithm>

namespace hyperrun {

TokenAxes::TokenAxes(const Graph& graph, const std::vector<Declaration>& declared) {
  for (std::size_t t = 0; t < graph.tensors.size(); ++t) {
    const Tensor& tensor = graph.tensors[t];
    if (tensor.cls != TensorClass::kData || !declared[t].layout) continue;
    for (std::size_t d = 0; d < tensor.dims.size(); ++d) {
      const AxisList& axes = declared[t].layout->dims[d];
      for (const AxisId a : axes) dims_.emplace(a, tensor.dims[d]);
      axes_.emplace(tensor.dims[d], axes);
    }
  }
}

DimId TokenAxes::dim_of(AxisId a) const {
  const auto found = dims_.find(a);
  return found == dims_.end() ? DimId{} : found->second;
}

bool TokenAxes::order(DimId dim, AxisList& axes) const {
  const auto found = axes_.find(dim);
  if (found == axes_.end()) return false;
  const auto place = [&](AxisId a) { return std::ranges::find(found->second, a); };
  if (std::ranges::any_of(axes, [&](AxisId a) { return place(a) == found->second.end(); })) return false;
  std::ranges::sort(axes, {}, place);
  return true;
}

}  // namespace hyperrun

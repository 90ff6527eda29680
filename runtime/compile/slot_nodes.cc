#include "runtime/compile/slot_nodes.h"

#include <algorithm>

namespace hyperrun {
namespace {

// Finds, from the end, nodes that compute gradients of weights, and redistributions that only these need.
std::vector<bool> find_staying(const Graph& graph) {
  std::vector<bool> flows(graph.tensors.size(), false);  // tensors that a node which does not stay uses
  std::vector<bool> stays(graph.nodes.size(), false);
  for (std::size_t i = graph.nodes.size(); i-- > 0;) {
    const Node& n = graph.nodes[i];
    if (n.phase == Phase::kUpdate || n.phase == Phase::kBegin) continue;
    stays[i] =
        n.phase == Phase::kBackward && !n.outputs.empty() &&
        std::all_of(n.outputs.begin(), n.outputs.end(), [&](TensorId t) {
          const TensorClass cls = graph[t].cls;
          return cls == TensorClass::kGradient || (cls == TensorClass::kExchanged && !flows[t.index()]);
        });
    if (stays[i]) continue;
    for (TensorId t : n.inputs) flows[t.index()] = true;
    if (n.addend.valid()) flows[n.addend.index()] = true;
  }
  return stays;
}

}  // namespace

SlotNodes::SlotNodes(const Graph& graph) : stays_(find_staying(graph)) {
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    const Node& n = graph.nodes[i];
    if (n.phase == Phase::kForward) nodes_[{n.stage, SlotKind::kForward}].push_back(i);
    if (n.phase != Phase::kBackward) continue;
    nodes_[{n.stage, SlotKind::kBackward}].push_back(i);
    nodes_[{n.stage, stays_[i] ? SlotKind::kWeightGradient : SlotKind::kInputGradient}].push_back(i);
  }
}

const std::vector<std::size_t>& SlotNodes::of(const Slot& slot) const {
  const auto found = nodes_.find({slot.stage, slot.kind});
  return found == nodes_.end() ? none_ : found->second;
}

}  // namespace hyperrun

// Finds the nodes of a graph that each slot of the pipeline's schedule runs.
#pragma once

#include <map>
#include <utility>
#include <vector>

#include "runtime/compile/pipeline_schedule.h"
#include "runtime/ir/graph.h"

namespace hyperrun {

class SlotNodes {
 public:
  explicit SlotNodes(const Graph& graph);

  // Indices into graph.nodes, ascending.
  const std::vector<std::size_t>& of(const Slot& slot) const;

  // True for nodes of the backward pass that compute only gradients of weights: no other stage waits for
  // them.
  bool stays(std::size_t node) const { return stays_[node]; }

 private:
  std::vector<bool> stays_;
  std::map<std::pair<int, SlotKind>, std::vector<std::size_t>> nodes_;  // by stage and kind
  std::vector<std::size_t> none_;
};

}  // namespace hyperrun

// Appends to the sharded graph: nodes with unique names, and copies of tensors in other layouts.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "runtime/ir/graph.h"

namespace hyperrun {

class Emitter {
 public:
  // `graph` has a layout for each tensor.
  explicit Emitter(Graph& graph) : graph_(graph) {}

  // Attributes of appended nodes. `reason` is set while a redistribution is appended.
  Phase phase = Phase::kInit;
  int layer = -1;
  std::string reason;

  TensorId add(Tensor tensor, const Layout& layout);

  // Adds a copy of tensor `of` in `layout`, named with `suffix`.
  TensorId moved(TensorId of, const Layout& layout, const std::string& suffix);

  // Appends a cast of `from`, which has the values of `of`, to another data type.
  TensorId cast(TensorId from, TensorId of, DType to, const std::string& suffix);

  // Appends a node. Nodes with equal names are numbered.
  void append(const std::string& name, GraphOp op, std::vector<TensorId> inputs,
              std::vector<TensorId> outputs, TensorId addend = {});

  // Lets the last node write `wanted` instead of `written`. `written` must be the last tensor and is removed.
  void write_instead(TensorId written, TensorId wanted);

 private:
  Graph& graph_;
  std::map<std::string, int> named_;  // by name: number of nodes
};

// Sets Emitter::reason during its lifetime.
class ReasonScope {
 public:
  ReasonScope(Emitter& emit, std::string reason)
      : emit_(emit), before_(std::exchange(emit.reason, std::move(reason))) {}
  ~ReasonScope() { emit_.reason = std::move(before_); }
  ReasonScope(const ReasonScope&) = delete;
  ReasonScope& operator=(const ReasonScope&) = delete;

 private:
  Emitter& emit_;
  std::string before_;
};

}  // namespace hyperrun

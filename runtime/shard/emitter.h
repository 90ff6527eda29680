// Appends to the sharded graph: tensors that are others in another layout, and nodes with names of their own.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "runtime/ir/graph.h"

namespace hyperrun {

class Emitter {
 public:
  // `graph` has a layout for each of its tensors.
  explicit Emitter(Graph& graph) : graph_(graph) {}

  Phase phase = Phase::kInit;  // of what is appended
  int layer = -1;              // likewise
  std::string reason;          // likewise; set while a redistribution is appended

  TensorId add(Tensor tensor, const Layout& layout);

  // A new tensor: `of` in `layout`, under its name and `suffix`.
  TensorId moved(TensorId of, const Layout& layout, const std::string& suffix);

  // `from`, which holds what `of` does, in another data type.
  TensorId cast(TensorId from, TensorId of, DType to, const std::string& suffix);

  // Several nodes that want one name are numbered.
  void append(const std::string& name, GraphOp op, std::vector<TensorId> inputs,
              std::vector<TensorId> outputs, TensorId addend = {});

  // The last node writes `wanted` instead of `written`, the last tensor, which is gone then.
  void write_instead(TensorId written, TensorId wanted);

 private:
  Graph& graph_;
  std::map<std::string, int> named_;  // how many nodes wanted a name
};

// What is appended while it lives is a redistribution, made for this reason.
class Because {
 public:
  Because(Emitter& emit, std::string reason)
      : emit_(emit), before_(std::exchange(emit.reason, std::move(reason))) {}
  ~Because() { emit_.reason = std::move(before_); }
  Because(const Because&) = delete;
  Because& operator=(const Because&) = delete;

 private:
  Emitter& emit_;
  std::string before_;
};

}  // namespace hyperrun

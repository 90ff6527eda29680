// Evaluates a Graph node by node in double precision, on one device. It is an independent reference for the
// gradient rules, the shard pass and the kernels: written for clarity from the definitions of the operators
// in graph.h, without code of the compiler or the kernels.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "runtime/ir/graph.h"

namespace hyperrun::testing {

using Values = std::vector<double>;

class Interpreter {
 public:
  explicit Interpreter(const Graph& graph) : graph_(graph) {}

  // The value of a tensor. Before run(), callers set tensors that no node of the phases to come defines, or
  // that an InitNormal would draw, and the results of LoadBatch ("ids", "targets") as doubles.
  Values& operator[](TensorId t) { return values_[storage_of(graph_, t).value]; }
  Values& operator[](const std::string& tensor_name);

  double lr = 0;
  std::int64_t step = 0;  // from 0, for the bias correction

  // Runs the nodes of one phase in order. Gradients and the loss are overwritten, not accumulated.
  void run(Phase phase);

 private:
  friend class Evaluation;
  const Graph& graph_;
  std::map<std::int32_t, Values> values_;
};

}  // namespace hyperrun::testing

// The values of a job on one device, with which those of a layout are compared, and how much they may differ.
#pragma once

#include <cstddef>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "runtime/ir/graph.h"
#include "runtime/verify/merged.h"

namespace hyperrun {

// A value for each tensor of the current step, in each micro-batch, and for the state before the step.
template <class Value>
class StepValues {
 public:
  explicit StepValues(const Graph& graph) : graph_(graph) {}

  Value& made(TensorId t, int micro_batch) { return made_[{t, micro_batch}]; }

  // The value at the end of that micro-batch; null when there is none.
  const Value* find(TensorId t, int micro_batch) const {
    const bool once = graph_[t].cls == TensorClass::kCopy;  // made before the first micro-batch
    const auto made = made_.find({t, once ? 0 : micro_batch});
    if (made != made_.end()) return &made->second;
    const auto state = state_.find(storage_of(graph_, t));
    return state == state_.end() ? nullptr : &state->second;
  }

  void end_step() {
    for (auto& [key, value] : made_) {
      const TensorId storage = storage_of(graph_, key.first);
      if (is_state(graph_[storage].cls)) state_[storage] = std::move(value);
    }
    made_.clear();
  }

 private:
  const Graph& graph_;
  std::map<std::pair<TensorId, int>, Value> made_;
  std::map<TensorId, Value> state_;
};

// The device runs each step twice: as it is, and from perturbed weights. These had their last bits, in the
// data type of products, changed once in the initial state.
class Reference {
 public:
  // `rounds`: something is bfloat16, on this device or in the layout.
  Reference(const Graph& graph, bool rounds);

  void keep(const Write& write, std::size_t output, std::span<const std::byte> bytes);
  void keep_perturbed(const Write& write, std::size_t output, std::span<std::byte> bytes);
  void end_step();

  const std::vector<float>& value(TensorId t, int micro_batch) const;
  // The allowed relative difference (verify.h). Where tokens choose experts in bfloat16, it allows for two
  // tokens that choose otherwise.
  double tolerance(TensorId t, int micro_batch) const;

 private:
  TensorId written(const Write& write, std::size_t output) const {
    return graph_.nodes[static_cast<std::size_t>(write.node)].outputs[output];
  }

  const Graph& graph_;
  bool rounds_ = false;                // values are rounded to bfloat16
  std::map<TensorId, double> routed_;  // by tensor that depends on choices: the effect of two other choices
  StepValues<std::vector<float>> values_;
  StepValues<double> noise_;  // relative difference of the perturbed values
};

// The allowed relative difference of the mean of `values` values that rounding changes by `noise`.
double allowed_difference(double noise, double values, bool rounds);

}  // namespace hyperrun

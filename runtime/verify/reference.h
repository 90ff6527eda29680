// What one device makes of a job: the values that a layout's are compared with, and how much they may differ.
#pragma once

#include <cstddef>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "runtime/ir/graph.h"
#include "runtime/verify/merged.h"

namespace hyperrun {

// Of each tensor that the current step has made, in each micro-batch, and of the state as the step found it.
template <class Value>
class StepValues {
 public:
  explicit StepValues(const Graph& graph) : graph_(graph) {}

  Value& made(TensorId t, int micro_batch) { return made_[{t, micro_batch}]; }

  // As of the end of that micro-batch; null when there is none.
  const Value* find(TensorId t, int micro_batch) const {
    const bool once = graph_[t].cls == TensorClass::kCopy;  // before the first micro-batch
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

// Each step of the device is run twice: as it is, and then on weights whose last bits were changed once, in
// the initial state: of the format that products take them in.
class Reference {
 public:
  // `rounds`: something is bfloat16, on this device or where it is spread.
  Reference(const Graph& graph, bool rounds);

  void keep(const Write& write, std::size_t output, std::span<const std::byte> bytes);
  void keep_perturbed(const Write& write, std::size_t output, std::span<std::byte> bytes);
  void end_step();

  const std::vector<float>& value(TensorId t, int micro_batch) const;
  // Relative, see verify.h. After tokens have chosen experts in bfloat16 it allows for two that choose
  // otherwise.
  double tolerance(TensorId t, int micro_batch) const;

 private:
  TensorId written(const Write& write, std::size_t output) const {
    return graph_.nodes[static_cast<std::size_t>(write.node)].outputs[output];
  }

  const Graph& graph_;
  bool rounds_ = false;                // to bfloat16
  std::map<TensorId, double> routed_;  // of what follows from tokens' choices, what two of them change
  StepValues<std::vector<float>> values_;
  StepValues<double> noise_;  // how far the perturbed ones are away
};

// Relative, of the mean of so many values that rounding changes by `noise`.
double allowed_difference(double noise, double values, bool rounds);

}  // namespace hyperrun

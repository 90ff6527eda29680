#include "runtime/verify/counterpart.h"

#include <algorithm>
#include <array>
#include <map>

#include "runtime/shard/operator_rules.h"

namespace hyperrun {
namespace {

// True for nodes that change the layout or the data type of a value, not the value.
bool is_redistribution(const Node& node) {
  if (std::holds_alternative<op::Cast>(node.op)) return node.phase == Phase::kUpdate;
  return std::holds_alternative<op::AllReduce>(node.op) ||
         std::holds_alternative<op::ReduceScatter>(node.op) ||
         std::holds_alternative<op::AllGather>(node.op) || std::holds_alternative<op::AllToAll>(node.op) ||
         std::holds_alternative<op::Slice>(node.op);
}

// True for rows of experts and their counts, which each device has in an order of its own.
bool is_of_rows(const Tensor& tensor) { return tensor.counts.valid() || tensor.vectors > 0; }

ValueKind kind_of(TensorClass cls, Phase made_in) {
  if (cls == TensorClass::kWeight || cls == TensorClass::kCopy) return ValueKind::kWeight;
  if (cls == TensorClass::kOptimizer) return ValueKind::kOptimizer;
  const bool forward = made_in == Phase::kInit || made_in == Phase::kForward;
  return forward ? ValueKind::kActivation : ValueKind::kGradient;
}

class CounterpartMatcher {
 public:
  CounterpartMatcher(const Graph& sharded, const Graph& one) : graph_(sharded), one_(one) {
    found_.of.resize(graph_.tensors.size());
  }

  Counterparts run() {
    match_model();
    drop_own_parts();
    match_repeated();
    match_sums_of_pipelines();
    follow_redistributions();
    count_others();
    return std::move(found_);
  }

 private:
  Counterpart& of(TensorId t) { return found_.of[t.index()]; }

  void match_model() {
    for (const Node& node : one_.nodes)
      for (const TensorId t : node.outputs)
        if (t.index() < graph_.tensors.size() && graph_[t].name == one_[t].name && !is_of_rows(one_[t]))
          of(t) = {t, kind_of(one_[t].cls, node.phase)};
  }

  void drop_own_parts() {
    for (const Node& node : graph_.nodes) {
      const bool is_part = std::any_of(node.outputs.begin(), node.outputs.end(), [&](TensorId t) {
        return !graph_.layouts[t.index()].partial.empty();
      });
      if (!is_part) continue;
      for (const int output : operator_rule(graph_, node).local_outputs) {
        of(node.outputs[static_cast<std::size_t>(output)]) = {};
        ++found_.own_parts;
      }
    }
  }

  void match_repeated() {
    constexpr std::string_view kAgain = ".again";
    std::map<std::string_view, std::size_t> by_name;
    for (std::size_t t = 0; t < graph_.tensors.size(); ++t) {
      const std::string_view name = graph_.tensors[t].name;
      by_name.emplace(name, t);
      if (!name.ends_with(kAgain)) continue;
      const auto first = by_name.find(name.substr(0, name.size() - kAgain.size()));
      if (first != by_name.end()) found_.of[t] = found_.of[first->second];
    }
  }

  void match_sums_of_pipelines() {
    const bool pipeline =
        std::any_of(graph_.nodes.begin(), graph_.nodes.end(), [](const Node& n) { return n.stage > 0; });
    for (const Node& node : graph_.nodes) {
      const bool between_stages = node.phase == Phase::kUpdate && std::holds_alternative<op::Add>(node.op);
      const TensorId first = between_stages ? node.inputs[1] : node.addend;
      if (!pipeline || !first.valid() || !is_accumulated(graph_[first].cls)) continue;
      of(first).in = MicroBatches::kFirst;
      of(node.outputs[0]).in = MicroBatches::kLast;
    }
  }

  // Hands counterparts on from a tensor of the model to its redistributed copies, and back to their sources.
  void follow_redistributions() {
    const auto hand_on = [&](TensorId from, TensorId to) {
      if (!of(to).tensor.valid()) of(to) = of(from);
    };
    for (const Node& node : graph_.nodes)
      if (is_redistribution(node)) hand_on(node.inputs[0], node.outputs[0]);
    for (auto node = graph_.nodes.rbegin(); node != graph_.nodes.rend(); ++node) {
      if (is_redistribution(*node)) hand_on(node->outputs[0], node->inputs[0]);
      if (std::holds_alternative<op::Accumulate>(node->op) && !node->addend.valid()) {
        hand_on(node->outputs[0], node->inputs[0]);
        of(node->inputs[0]).in = MicroBatches::kFirst;
      }
    }
  }

  void count_others() {
    for (const Node& node : graph_.nodes)
      for (const TensorId t : node.outputs) found_.others += of(t).tensor.valid() ? 0 : 1;
    found_.others -= found_.own_parts;
  }

  const Graph& graph_;
  const Graph& one_;
  Counterparts found_;
};

}  // namespace

std::string_view name(ValueKind kind) {
  constexpr std::array<std::string_view, kValueKinds> kNames{"activations", "gradients", "weights",
                                                             "optimizer"};
  return kNames[static_cast<std::size_t>(kind)];
}

Counterparts counterparts(const Graph& sharded, const Graph& one_device) {
  return CounterpartMatcher(sharded, one_device).run();
}

}  // namespace hyperrun

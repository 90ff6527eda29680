#include "runtime/shard/ring.h"

#include <fmt/core.h>

#include <map>
#include <utility>

#include "runtime/base/error.h"

namespace hyperrun {
namespace {

using Pair = std::pair<TensorId, TensorId>;  // a tensor for keys and one for values

class RingBuilder {
 public:
  RingBuilder(Graph& graph, const Node& attention, const AxisList& axes, std::int64_t devices)
      : graph_(graph), node_(attention), axes_(axes), devices_(static_cast<int>(devices)) {
    HR_CHECK(devices > 1, attention.name);
  }

  void forward() {
    Pair keys{node_.inputs[1], node_.inputs[2]};
    std::vector<TensorId> found;  // o and lse after the steps so far
    for (int step = 0; step < devices_; ++step) {
      const Pair next = next_keys(keys, step);
      std::vector<TensorId> inputs{node_.inputs[0], keys.first, keys.second};
      inputs.insert(inputs.end(), found.begin(), found.end());
      found = {step + 1 < devices_ || rounded(node_.outputs[0]) ? sum_of(node_.outputs[0], step)
                                                                : node_.outputs[0],
               step + 1 < devices_ ? like(node_.outputs[1], step) : node_.outputs[1]};
      const auto& whole = std::get<op::Attention>(node_.op);
      emit(step, op::AttentionStep{axes_, step, whole.causal, whole.window, whole.scale}, std::move(inputs),
           found);
      keys = next;
    }
    round(found[0], node_.outputs[0]);
  }

  void backward() {
    Pair keys{node_.inputs[1], node_.inputs[2]}, own{}, travelling{};
    TensorId dq;
    for (int step = 0; step < devices_; ++step) {
      const Pair next = next_keys(keys, step);
      std::vector<TensorId> inputs = node_.inputs;
      inputs[1] = keys.first;
      inputs[2] = keys.second;
      if (step > 0) inputs.push_back(dq);
      dq = step + 1 < devices_ || rounded(node_.outputs[0]) ? sum_of(node_.outputs[0], step)
                                                            : node_.outputs[0];
      const Pair part{like(node_.outputs[1], step), like(node_.outputs[2], step)};
      const auto& whole = std::get<op::AttentionGrad>(node_.op);
      emit(step, op::AttentionStepGrad{axes_, step, whole.causal, whole.window, whole.scale},
           std::move(inputs), {dq, part.first, part.second});
      if (step == 0)
        own = part;
      else
        travelling = next_gradients(step == 1 ? part : sum(travelling, part, step), step);
      keys = next;
    }
    round(dq, node_.outputs[0]);
    add(travelling.first, own.first, node_.outputs[1]);
    add(travelling.second, own.second, node_.outputs[2]);
  }

 private:
  void emit(int step, GraphOp op, std::vector<TensorId> inputs, std::vector<TensorId> outputs) {
    append(node_.name + ".step" + std::to_string(step), std::move(op), std::move(inputs), std::move(outputs));
  }

  void append(std::string name, GraphOp op, std::vector<TensorId> inputs, std::vector<TensorId> outputs) {
    graph_.nodes.push_back({std::move(name),
                            std::move(op),
                            std::move(inputs),
                            std::move(outputs),
                            {},
                            node_.phase,
                            node_.layer});
  }

  TensorId copy_of(TensorId t, const std::string& suffix, TensorClass cls) {
    Tensor copy = graph_[t];
    copy.name += suffix;
    copy.cls = cls;
    const Layout layout = graph_.layouts[t.index()];
    graph_.layouts.push_back(layout);
    return graph_.add_tensor(std::move(copy));
  }

  // A step's version of an output.
  TensorId like(TensorId output, int step) {
    return copy_of(output, ".step" + std::to_string(step), TensorClass::kActivation);
  }

  // Sums over steps are float32. The result is rounded after the last step.
  bool rounded(TensorId output) const { return graph_[output].dtype != DType::kF32; }
  TensorId sum_of(TensorId output, int step) {
    const TensorId sum = like(output, step);
    graph_[sum].dtype = DType::kF32;
    return sum;
  }
  void round(TensorId sum, TensorId output) {
    if (sum != output) append(graph_[output].name + ".cast", op::Cast{}, {sum}, {output});
  }

  // Appends the shift of `t`, a version of `of`, to the next device.
  TensorId shifted(TensorId t, TensorId of, int step) {
    const TensorId arrived =
        copy_of(of, "@" + node_.name + ".step" + std::to_string(step), TensorClass::kExchanged);
    append(graph_[arrived].name + ".Shift", op::Shift{axes_}, {t}, {arrived});
    const Tensor& query = graph_[node_.inputs[0]];
    graph_.nodes.back().reason =
        node_.name + " keeps its queries where they are, their " + graph_[query.dims[1]].name + " split";
    return arrived;
  }
  Pair next_keys(const Pair& now, int step) {
    if (step + 1 == devices_) return {};
    const TensorId k = shifted(now.first, node_.inputs[1], step + 1);
    return {k, shifted(now.second, node_.inputs[2], step + 1)};
  }
  Pair next_gradients(const Pair& now, int step) {
    const TensorId dk = shifted(now.first, node_.outputs[1], step);
    return {dk, shifted(now.second, node_.outputs[2], step)};
  }

  void add(TensorId a, TensorId b, TensorId to) { append(graph_[to].name + ".add", op::Add{}, {a, b}, {to}); }
  Pair sum(const Pair& arrived, const Pair& part, int step) {
    const Pair total{copy_of(node_.outputs[1], ".sum" + std::to_string(step), TensorClass::kActivation),
                     copy_of(node_.outputs[2], ".sum" + std::to_string(step), TensorClass::kActivation)};
    add(arrived.first, part.first, total.first);
    add(arrived.second, part.second, total.second);
    return total;
  }

  Graph& graph_;
  const Node& node_;
  const AxisList& axes_;
  int devices_;
};

}  // namespace

AxisList ring_of(const Node& node, const std::vector<Declaration>& declared) {
  TensorId o;
  if (std::holds_alternative<op::Attention>(node.op)) o = node.outputs[0];
  if (std::holds_alternative<op::AttentionGrad>(node.op)) o = node.inputs[3];
  if (!o.valid() || !declared[o.index()].layout) return {};
  return declared[o.index()].layout->dims[1];
}

void order_sequence(Graph& graph, const std::vector<Node>& nodes, const Mesh& mesh,
                    const std::vector<Declaration>& declared) {
  std::map<std::int32_t, std::string> first;  // by sequence: the first attention over it
  for (const Node& node : nodes) {
    const auto* attention = std::get_if<op::Attention>(&node.op);
    if (attention == nullptr || !attention->causal) continue;
    const DimId sequence = graph[node.outputs[0]].dims[1];
    Dim& seq = graph.dims[sequence.index()];
    const std::int64_t ring = mesh.size(ring_of(node, declared));
    const auto [known, is_new] = first.try_emplace(sequence.value, node.name);
    if (is_new) {
      seq.ring = ring;
    } else if (ring != seq.ring) {
      const std::string& rule = declared[node.outputs[0].index()].origin;
      throw Error(Code::kBadLayout, fmt::format("{} goes round a ring of {}, {} round one of {}",
                                                known->second, seq.ring, node.name, ring))
          .at(rule.empty() ? "parallel.rules" : rule)
          .legal(fmt::format("one size for all: {} or {}", seq.ring, ring))
          .fix("give \"seq\" of every layers.*.attention.o to axes of the same size");
    }
  }
}

void append_ring(Graph& graph, const Node& attention, const AxisList& axes, std::int64_t devices) {
  RingBuilder ring(graph, attention, axes, devices);
  if (std::holds_alternative<op::Attention>(attention.op))
    ring.forward();
  else
    ring.backward();
}

}  // namespace hyperrun

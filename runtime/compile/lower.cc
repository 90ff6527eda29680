#include "runtime/compile/lower.h"

#include <algorithm>
#include <limits>
#include <map>

#include "runtime/base/error.h"
#include "runtime/compile/lower_operator.h"
#include "runtime/compile/scratch.h"

namespace hyperrun {
namespace {

constexpr int kForever = std::numeric_limits<int>::max();

Category category_of(TensorClass cls) {
  switch (cls) {
    case TensorClass::kWeight: return Category::kWeights;
    case TensorClass::kOptimizer: return Category::kOptimizer;
    case TensorClass::kConstant: return Category::kConstants;
    case TensorClass::kGradient: return Category::kGradients;
    case TensorClass::kExchanged: return Category::kCommunication;
    case TensorClass::kData: return Category::kData;
    case TensorClass::kAccumulator:
    case TensorClass::kActivation: return Category::kActivations;
  }
  return Category::kActivations;
}

class Lowering {
 public:
  Lowering(const Graph& graph, const Mesh& mesh, const LowerOptions& options)
      : graph_(graph),
        mesh_(mesh),
        options_(options),
        buffer_of_(graph.tensors.size()),
        initialised_(graph.tensors.size(), false) {
    program_.name = options.name;
    program_.mesh = mesh;
    for (const Node& n : graph.nodes)
      if (n.phase == Phase::kInit)
        for (TensorId t : n.outputs) initialised_[t.index()] = true;
    find_last_uses();
  }

  Lowered run() {
    for (int mb = 0; mb < options_.micro_batches; ++mb) {
      micro_batch_ = mb;
      if (mb > 0) forget_activations();
      for (std::size_t i = 0; i < graph_.nodes.size(); ++i)
        if (graph_.nodes[i].phase != Phase::kUpdate) emit(i);
    }
    micro_batch_ = -1;
    const std::size_t update = program_.instrs.size();
    for (std::size_t i = 0; i < graph_.nodes.size(); ++i)
      if (graph_.nodes[i].phase == Phase::kUpdate) emit(i);
    for (const auto& [label, t] : graph_.outputs)
      if (buffer_of_[t.index()].valid()) program_.outputs.push_back({label, operand(t), graph_[t].dtype});
    return {std::move(program_), update};
  }

 private:
  void find_last_uses() {
    last_use_.assign(graph_.tensors.size(), -1);
    for (std::size_t i = 0; i < graph_.nodes.size(); ++i) {
      if (!options_.wants(graph_.nodes[i])) continue;
      for (TensorId t : graph_.nodes[i].inputs) last_use_[t.index()] = static_cast<int>(i);
      if (graph_.nodes[i].addend.valid()) last_use_[graph_.nodes[i].addend.index()] = static_cast<int>(i);
    }
    for (const auto& [label, t] : graph_.outputs) last_use_[t.index()] = kForever;
  }

  void forget_activations() {
    for (std::size_t t = 0; t < buffer_of_.size(); ++t)
      if (!is_accumulated(graph_.tensors[t].cls) && !keeps(TensorId(static_cast<std::int64_t>(t))))
        buffer_of_[t] = {};
  }

  // State of the job: by class, or because it is set before the first invocation.
  bool keeps(TensorId t) const {
    t = storage_of(graph_, t);
    return is_state(graph_[t].cls) || initialised_[t.index()];
  }

  Bytes bytes_of(TensorId t) const {
    std::int64_t n = size_of(graph_[t].dtype);
    for (std::int64_t size : local_shape(graph_.shape(t), graph_.layouts[t.index()], mesh_)) n *= size;
    return Bytes(n);
  }

  BufferId new_buffer(std::string name, Bytes bytes, Category category, bool state = false) {
    Buffer b;
    b.name = std::move(name);
    b.bytes = bytes;
    b.category = category;
    b.state = state;
    program_.buffers.push_back(std::move(b));
    return BufferId(static_cast<std::int64_t>(program_.buffers.size()) - 1);
  }

  BufferId state_buffer(TensorId t) {
    const TensorId storage = storage_of(graph_, t);
    BufferId& b = buffer_of_[storage.index()];
    if (!b.valid())
      b = new_buffer(graph_[storage].name, bytes_of(storage), category_of(graph_[storage].cls), true);
    return b;
  }

  Operand operand(TensorId t) {
    if (keeps(t)) return {state_buffer(t), Bytes(0), bytes_of(t)};
    HR_CHECK(buffer_of_[t.index()].valid(), graph_[t].name + " has no buffer");
    return {buffer_of_[t.index()], Bytes(0), bytes_of(t)};
  }

  // A dead input of the node may give its buffer to an output.
  bool gives_buffer(TensorId input, std::size_t node) const {
    return !keeps(input) && last_use_[input.index()] == static_cast<int>(node);
  }

  BufferId output_buffer(std::size_t node_index, std::size_t output) {
    const Node& node = graph_.nodes[node_index];
    const TensorId t = node.outputs[output];
    if (keeps(t)) return state_buffer(t);
    if (is_accumulated(graph_[t].cls)) return accumulated_buffer(node, t);
    if (output == 0 && node.addend.valid() && gives_buffer(node.addend, node_index))
      return buffer_of_[node.addend.index()];
    for (const auto& [out, in] : in_place(node.op)) {
      if (out != output || in >= node.inputs.size() || !gives_buffer(node.inputs[in], node_index)) continue;
      const BufferId b = buffer_of_[node.inputs[in].index()];
      const bool twice = std::count_if(node.inputs.begin(), node.inputs.end(), [&](TensorId other) {
                           return !keeps(other) && buffer_of_[other.index()] == b;
                         }) > 1;
      const bool taken =
          std::any_of(node.outputs.begin(), node.outputs.begin() + static_cast<std::ptrdiff_t>(output),
                      [&](TensorId other) { return buffer_of_[other.index()] == b; });
      if (!twice && !taken && program_[b].bytes == bytes_of(t)) return b;
    }
    return new_buffer(graph_[t].name + suffix(), bytes_of(t), category_of(graph_[t].cls));
  }

  // Sums of one chain of addends share a buffer.
  BufferId accumulated_buffer(const Node& node, TensorId t) {
    BufferId& b = buffer_of_[t.index()];
    if (b.valid()) return b;
    if (node.addend.valid()) return b = buffer_of_[node.addend.index()];
    return b = new_buffer(graph_[t].name, bytes_of(t), category_of(graph_[t].cls));
  }

  bool accumulates(const Node& node) const {
    if (node.addend.valid()) return true;
    return micro_batch_ > 0 && std::any_of(node.outputs.begin(), node.outputs.end(),
                                           [&](TensorId t) { return is_accumulated(graph_[t].cls); });
  }

  // Of names of what each micro-batch has its own of.
  std::string suffix() const {
    return options_.micro_batches > 1 && micro_batch_ >= 0 ? "#" + std::to_string(micro_batch_) : "";
  }

  void emit(std::size_t index) {
    const Node& node = graph_.nodes[index];
    if (!options_.wants(node)) return;
    Instr instr;
    instr.op = lower_operator({graph_, mesh_, micro_batch_, accumulates(node)}, node);
    for (TensorId t : node.inputs) instr.in.push_back(operand(t));
    for (std::size_t o = 0; o < node.outputs.size(); ++o) {
      const BufferId b = output_buffer(index, o);
      if (!keeps(node.outputs[o])) buffer_of_[node.outputs[o].index()] = b;
      instr.out.push_back({b, Bytes(0), bytes_of(node.outputs[o])});
    }
    if (node.addend.valid() && operand(node.addend).buffer != instr.out[0].buffer)
      push(copy_of(operand(node.addend), instr.out[0]), node);
    const Bytes scratch = scratch_bytes(instr.op);
    if (scratch.value > 0)
      instr.scratch = {new_buffer(node.name + ".scratch" + suffix(), scratch, Category::kScratch), Bytes(0),
                       scratch};
    push(std::move(instr), node);
  }

  static Instr copy_of(const Operand& from, const Operand& to) {
    Instr copy;
    copy.op = instr::Copy{1, 1, from.bytes.value / 4, {}, 4};
    copy.in = {from};
    copy.out = {to};
    return copy;
  }

  void push(Instr instr, const Node& node) {
    instr.stream = stream_of(instr.op);
    instr.origin = static_cast<std::int32_t>(program_.origins.size());
    program_.origins.push_back(node.name + suffix());
    program_.instrs.push_back(std::move(instr));
  }

  const Graph& graph_;
  const Mesh& mesh_;
  const LowerOptions& options_;
  Program program_;
  std::vector<BufferId> buffer_of_;
  std::vector<bool> initialised_;  // by tensor
  std::vector<int> last_use_;
  int micro_batch_ = 0;  // -1: the update
};

}  // namespace

Lowered lower(const Graph& graph, const Mesh& mesh, const LowerOptions& options) {
  return Lowering(graph, mesh, options).run();
}

}  // namespace hyperrun

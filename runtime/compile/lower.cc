#include "runtime/compile/lower.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <initializer_list>
#include <limits>
#include <map>
#include <optional>
#include <string_view>

#include "runtime/base/error.h"
#include "runtime/compile/lower_operator.h"
#include "runtime/compile/slot_nodes.h"
#include "runtime/device/footprint/scratch.h"

namespace hyperrun {
namespace {

constexpr std::size_t kForever = std::numeric_limits<std::size_t>::max();

Category category_of(TensorClass cls) {
  switch (cls) {
    case TensorClass::kCopy:
    case TensorClass::kWeight: return Category::kWeights;
    case TensorClass::kOptimizer: return Category::kOptimizer;
    case TensorClass::kConstant: return Category::kConstants;
    case TensorClass::kGradient: return Category::kGradients;
    case TensorClass::kExchanged:
    case TensorClass::kPort: return Category::kCommunication;
    case TensorClass::kData: return Category::kData;
    case TensorClass::kCache: return Category::kCache;
    case TensorClass::kAccumulator:
    case TensorClass::kActivation: return Category::kActivations;
  }
  return Category::kActivations;
}

bool is_recv(const Node& n) { return std::holds_alternative<op::Recv>(n.op); }

class Lowering {
 public:
  Lowering(const Graph& graph, const Mesh& mesh, const LowerOptions& options)
      : graph_(graph),
        mesh_(mesh),
        options_(options),
        slot_nodes_(graph),
        lasting_(graph.tensors.size()),
        initialised_(graph.tensors.size(), false),
        of_the_step_(graph.tensors.size(), false),
        begun_(graph.tensors.size(), false),
        made_(graph.tensors.size(), false),
        lowered_(graph.nodes.size()),
        bytes_(graph.tensors.size()),
        first_of_sum_(graph.tensors.size()) {
    program_.name = options.name;
    program_.mesh = mesh;
    for (const Slot& slot : options.slots) {
      micro_batches_ = std::max(micro_batches_, slot.micro_batch + 1);
      split_ = split_ || slot.kind == SlotKind::kWeightGradient;
    }
    for (int b = 0; b < micro_batches_; ++b)
      suffixes_.push_back(micro_batches_ > 1 ? fmt::format("#{}", b) : "");
    passing_.resize(static_cast<std::size_t>(micro_batches_));
    for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
      const Node& n = graph.nodes[i];
      if (n.phase == Phase::kInit)
        for (TensorId t : n.outputs) initialised_[t.index()] = true;
      if (n.phase == Phase::kBegin)
        for (TensorId t : n.outputs) of_the_step_[t.index()] = true;
      if (is_recv(n)) recv_of_[n.outputs[0].value] = i;
      for (TensorId t : n.outputs) first_of_sum_[t.index()] = t;
      if (n.addend.valid()) first_of_sum_[n.outputs[0].index()] = first_of_sum_[n.addend.index()];
    }
    find_last_uses();
    find_crossing_buffers();
  }

  Lowered run() {
    std::size_t most = graph_.nodes.size();
    for (const Slot& slot : options_.slots) most += slot_nodes_.of(slot).size();
    program_.instrs.reserve(most);
    origins_.reserve(most);
    if (options_.names) program_.origins.reserve(most);
    emit_all(Phase::kInit);
    emit_all(Phase::kBegin);
    for (std::size_t s = 0; s < options_.slots.size(); ++s) emit_slot(s);
    const std::size_t update = program_.instrs.size();
    emit_all(Phase::kUpdate);
    if (options_.sums == Sums::kCleared) clear_sums();
    for (const auto& [label, t] : graph_.outputs)
      if (made_[t.index()] && buffer_of(t).valid()) program_.outputs.push_back(output(label, t));
    return {std::move(program_), update, std::move(origins_)};
  }

 private:
  void emit_slot(std::size_t s) {
    const Slot& slot = options_.slots[s];
    const std::size_t next = end_of_turn(s), until = next < options_.slots.size() ? end_of_turn(next) : next;
    for (; received_ < until; ++received_) receive_for(options_.slots[received_]);
    if (slot.beside || next > s + 1) half_ = 2 * pairs_ + (slot.beside ? 1 : 0);
    for (const std::size_t i : slot_nodes_.of(slot))
      if (!is_recv(graph_.nodes[i])) emit(i, slot.micro_batch);
    if (slot.beside) ++pairs_;
    half_ = -1;
  }

  // The end of the turn of `slot`, which includes the slots beside it.
  std::size_t end_of_turn(std::size_t slot) const {
    do ++slot;
    while (slot < options_.slots.size() && options_.slots[slot].beside);
    return slot;
  }

  void emit_all(Phase phase) {
    for (std::size_t i = 0; i < graph_.nodes.size(); ++i) {
      const Node& n = graph_.nodes[i];
      if (n.phase != phase) continue;
      is_recv(n) ? receive({n.outputs[0], -1}, std::get<op::Recv>(n.op).peer) : emit(i, -1);
    }
  }

  // Clears each sum once, however many nodes add to it.
  void clear_sums() {
    for (std::size_t i = 0; i < graph_.nodes.size(); ++i)
      for (const TensorId t : graph_.nodes[i].outputs) {
        if (!is_accumulated(graph_[t].cls) || first_of_sum_[t.index()] != t) continue;
        HR_CHECK(graph_[t].dtype == DType::kF32, graph_[t].name);
        Instr fill;
        fill.op = instr::Fill{bytes_of(t).value / size_of(DType::kF32), 0};
        fill.out = {operand(t)};
        push(std::move(fill), Node{.name = graph_[t].name + ".clear", .phase = Phase::kUpdate}, {});
      }
  }

  // --- messages -----------------------------------------------------------------------------------

  void receive_for(const Slot& slot) {
    for (const std::size_t i : slot_nodes_.of(slot)) {
      const Node& n = graph_.nodes[i];
      if (is_recv(n) && options_.wants(n))
        receive({n.outputs[0], slot.micro_batch}, std::get<op::Recv>(n.op).peer);
    }
  }

  // Messages of a peer come in order, so those before `wanted` are received first.
  void receive(const Message& wanted, int peer) {
    const auto arrivals = options_.arrivals.find(peer);
    if (arrivals == options_.arrivals.end()) return;  // another Program receives it
    std::size_t& taken = taken_[peer];
    const auto& list = arrivals->second;
    const auto until = std::find(list.begin(), list.end(), wanted);
    HR_CHECK(until != list.end(), graph_[wanted.tensor].name + " is not sent");
    for (; taken <= static_cast<std::size_t>(until - list.begin()); ++taken)
      emit(recv_of_.at(list[taken].tensor.value), list[taken].micro_batch);
  }

  // --- buffers ------------------------------------------------------------------------------------

  // The place of a node in the order in which the nodes of one micro-batch are issued.
  std::size_t rank(std::size_t node) const {
    const std::size_t n = graph_.nodes.size();
    if (graph_.nodes[node].phase == Phase::kUpdate) return 2 * n + node;
    if (graph_.nodes[node].phase == Phase::kBegin) return 0;
    return split_ && slot_nodes_.stays(node) ? n + node : node;
  }

  void find_last_uses() {
    last_use_.assign(graph_.tensors.size(), 0);
    const auto use = [&](TensorId t, std::size_t by) {
      last_use_[t.index()] = std::max(last_use_[t.index()], by);
    };
    for (std::size_t i = 0; i < graph_.nodes.size(); ++i) {
      if (!options_.wants(graph_.nodes[i])) continue;
      for (TensorId t : graph_.nodes[i].inputs) use(t, rank(i));
      if (graph_.nodes[i].addend.valid()) use(graph_.nodes[i].addend, rank(i));
    }
    for (const auto& [label, t] : graph_.outputs) last_use_[t.index()] = kForever;
  }

  // Finds the buffers of tensors that cross: that of the sum which they are made in place of. The result
  // depends on the graph alone, so it is the same in each Program.
  void find_crossing_buffers() {
    if (!options_.crosses) return;
    std::vector<int> uses(graph_.tensors.size());
    for (const Node& n : graph_.nodes) {
      if (n.phase != Phase::kUpdate) continue;
      for (const TensorId t : n.inputs) ++uses[t.index()];
      if (n.addend.valid()) ++uses[n.addend.index()];
    }
    sum_of_.resize(graph_.tensors.size());
    for (const Node& n : graph_.nodes)
      for (const TensorId t : n.outputs) sum_of_[t.index()] = first_of_sum_[t.index()];
    for (const Node& n : graph_.nodes) {
      if (n.phase != Phase::kUpdate) continue;
      for (const auto& [out, in] : in_place(n.op)) {
        if (in >= n.inputs.size()) continue;
        const TensorId t = n.outputs[out], from = n.inputs[in], sum = sum_of_[from.index()];
        if (uses[from.index()] == 1 && sum.valid() && keeps_sum(sum) && !crosses(from) &&
            bytes_of(sum) == bytes_of(t))
          sum_of_[t.index()] = sum;
      }
    }
  }

  bool crosses(TensorId t) const { return options_.crosses && options_.crosses(t); }

  // True for state of the job: by class, because it is set before the first invocation, as a kept sum, or
  // because it crosses to another Program.
  bool keeps(TensorId t) const {
    if (keeps_sum(t) || crosses(t)) return true;
    t = storage_of(graph_, t);
    return is_state(graph_[t].cls) || initialised_[t.index()];
  }
  bool keeps_sum(TensorId t) const {
    return options_.sums != Sums::kOfTheStep && is_accumulated(graph_[t].cls);
  }

  // State, sums and tensors made at the begin of a step have one buffer; all others have one for each
  // micro-batch, and the update uses that of the last.
  BufferId& buffer_of(TensorId t) {
    if (is_accumulated(graph_[t].cls) || keeps(t) || of_the_step_[t.index()]) return lasting_[t.index()];
    if (micro_batch_ < 0 && (passing_.back().empty() || !passing_.back()[t.index()].valid()))
      return lasting_[t.index()];
    auto& passing = micro_batch_ < 0 ? passing_.back() : passing_[static_cast<std::size_t>(micro_batch_)];
    if (passing.empty()) passing.resize(graph_.tensors.size());
    return passing[t.index()];
  }

  Bytes bytes_of(TensorId t) {
    std::optional<Bytes>& known = bytes_[t.index()];
    if (!known)
      known = Bytes(size_of(graph_[t].dtype) * local_elements(graph_, t, graph_.layouts[t.index()], mesh_));
    return *known;
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
    const TensorId storage = keeps_sum(t) ? first_of_sum_[t.index()]
                             : crosses(t) ? sum_of_[t.index()]
                                          : storage_of(graph_, t);
    BufferId& b = lasting_[storage.index()];
    if (!b.valid())
      b = new_buffer(graph_[storage].name, bytes_of(storage), category_of(graph_[storage].cls), true);
    return b;
  }

  Operand in_buffer(BufferId buffer, TensorId t) {
    return {buffer, Bytes(0), bytes_of(t), graph_[t].dtype, {}, empty_bytes(graph_, t, mesh_)};
  }

  Operand operand(TensorId t) {
    if (keeps(t)) return {state_buffer(t), Bytes(0), bytes_of(t), graph_[t].dtype};
    HR_CHECK(buffer_of(t).valid(), graph_[t].name + " has no buffer");
    return in_buffer(buffer_of(t), t);
  }

  Output output(const std::string& label, TensorId t) {
    Output output{label, operand(t), graph_[t].dtype, graph_.shape(t), graph_.layouts[t.index()], {}};
    for (const DimId d : graph_[t].dims) output.rings.push_back(graph_[d].ring);
    return output;
  }

  // True if an output may take the buffer of this input, which is dead after the node. A kept sum may give
  // its buffer too, in the update.
  bool gives_buffer(TensorId input, std::size_t node) const {
    if (crosses(input)) return false;
    if (keeps(input) && !(keeps_sum(input) && graph_.nodes[node].phase == Phase::kUpdate)) return false;
    return !of_the_step_[input.index()] && last_use_[input.index()] == rank(node);
  }

  BufferId output_buffer(std::size_t node_index, std::size_t output) {
    const Node& node = graph_.nodes[node_index];
    const TensorId t = node.outputs[output];
    if (keeps(t)) return state_buffer(t);
    if (is_accumulated(graph_[t].cls)) return accumulated_buffer(node, t);
    if (output == 0 && node.addend.valid() && gives_buffer(node.addend, node_index))
      return buffer_of(node.addend);
    for (const auto& [out, in] : in_place(node.op)) {
      if (out != output || in >= node.inputs.size() || !gives_buffer(node.inputs[in], node_index)) continue;
      const BufferId b = operand(node.inputs[in]).buffer;
      const bool twice = std::count_if(node.inputs.begin(), node.inputs.end(), [&](TensorId other) {
                           return !keeps(other) && buffer_of(other) == b;
                         }) > 1;
      const bool taken =
          std::any_of(node.outputs.begin(), node.outputs.begin() + static_cast<std::ptrdiff_t>(output),
                      [&](TensorId other) { return buffer_of(other) == b; });
      if (!twice && !taken && program_[b].bytes == bytes_of(t)) return b;
    }
    const BufferId b = new_buffer(named({graph_[t].name, suffix()}), bytes_of(t), category_of(graph_[t].cls));
    program_.buffers[b.index()].empty = empty_bytes(graph_, t, mesh_);
    return b;
  }

  // The buffer of a sum. Sums of one chain of addends share it.
  BufferId accumulated_buffer(const Node& node, TensorId t) {
    BufferId& b = lasting_[t.index()];
    if (b.valid()) return b;
    if (node.addend.valid()) return b = lasting_[node.addend.index()];
    return b = new_buffer(named({graph_[t].name}), bytes_of(t), category_of(graph_[t].cls));
  }

  // True if the node adds to its addend, or to the sum of earlier micro-batches.
  bool accumulates(const Node& node) const {
    if (node.addend.valid()) return true;
    return micro_batch_ >= 0 && std::any_of(node.outputs.begin(), node.outputs.end(), [&](TensorId t) {
             return is_accumulated(graph_[t].cls) && (begun_[t.index()] || keeps_sum(t));
           });
  }

  // A name of several parts; empty if the options want no names.
  std::string named(std::initializer_list<std::string_view> parts) const {
    std::string name;
    if (options_.names)
      for (const std::string_view part : parts) name += part;
    return name;
  }

  // The suffix of names that differ between micro-batches.
  const std::string& suffix() const {
    static const std::string kNone;
    return micro_batch_ >= 0 ? suffixes_[static_cast<std::size_t>(micro_batch_)] : kNone;
  }

  void emit(std::size_t index, int micro_batch) {
    const Node& node = graph_.nodes[index];
    if (!options_.wants(node)) return;
    micro_batch_ = micro_batch;
    const Origin origin{static_cast<std::int32_t>(index), micro_batch};
    Instr instr;
    instr.op = operator_of(index);
    instr.in.reserve(node.inputs.size());
    instr.out.reserve(node.outputs.size());
    for (TensorId t : node.inputs) instr.in.push_back(operand(t));
    for (std::size_t o = 0; o < node.outputs.size(); ++o) {
      const TensorId t = node.outputs[o];
      const BufferId b = output_buffer(index, o);
      if (!keeps(t)) buffer_of(t) = b;
      made_[t.index()] = true;
      if (is_accumulated(graph_[t].cls)) begun_[t.index()] = true;
      instr.out.push_back(in_buffer(b, t));
    }
    if (node.addend.valid() && operand(node.addend).buffer != instr.out[0].buffer)
      push(copy_of(operand(node.addend), instr.out[0]), node, origin);
    const Bytes scratch = scratch_bytes(instr);
    if (scratch.value > 0)
      instr.scratch = {new_buffer(named({node.name, ".scratch", suffix()}), scratch, Category::kScratch),
                       Bytes(0), scratch};
    push(std::move(instr), node, origin);
  }

  InstrOp operator_of(std::size_t index) {
    const Node& node = graph_.nodes[index];
    const bool accumulate = accumulates(node);
    std::optional<InstrOp>& known = lowered_[index][accumulate ? 1 : 0];
    if (!known) known = lower_operator({graph_, mesh_, accumulate}, node);
    InstrOp op = *known;
    std::visit(
        [&]<class Op>(Op& load) {
          if constexpr (requires { load.micro_batch_first; })
            load.micro_batch_first = micro_batch_ * graph_.shape(node.outputs[0])[0];
        },
        op);
    return op;
  }

  static Instr copy_of(const Operand& from, const Operand& to) {
    Instr copy;
    const std::int64_t element = size_of(from.dtype);
    copy.op = instr::Copy{1, 1, from.bytes.value / element, {}, element};
    copy.in = {from};
    copy.out = {to};
    return copy;
  }

  static Pass pass_of(const Node& node) {
    if (node.phase == Phase::kUpdate || node.phase == Phase::kBegin) return Pass::kUpdate;
    return node.phase == Phase::kBackward && !node.again ? Pass::kBackward : Pass::kForward;
  }

  void push(Instr instr, const Node& node, Origin origin) {
    instr.stream = stream_of(instr.op);
    instr.pass = pass_of(node);
    instr.half = half_;
    instr.origin = static_cast<std::int32_t>(origins_.size());
    origins_.push_back(origin);
    if (options_.names) program_.origins.push_back(named({node.name, suffix()}));
    program_.instrs.push_back(std::move(instr));
  }

  const Graph& graph_;
  const Mesh& mesh_;
  const LowerOptions& options_;
  SlotNodes slot_nodes_;
  Program program_;
  std::vector<Origin> origins_;                 // by Instr::origin
  std::vector<BufferId> lasting_;               // by tensor
  std::vector<std::vector<BufferId>> passing_;  // by micro-batch and tensor
  std::vector<bool> initialised_;               // by tensor
  std::vector<bool> of_the_step_;               // by tensor: made once, before the first micro-batch
  std::vector<std::size_t> last_use_;           // by tensor: the rank of the last node that uses it
  std::vector<bool> begun_;                     // by tensor: the sum has a value
  std::vector<bool> made_;                      // by tensor
  std::vector<std::array<std::optional<InstrOp>, 2>> lowered_;  // by node and whether it accumulates
  std::vector<std::optional<Bytes>> bytes_;      // by tensor: size of a device's part, once computed
  std::vector<TensorId> first_of_sum_;           // by tensor: the first of its chain of addends
  std::vector<TensorId> sum_of_;                 // by tensor, if any cross: the sum whose buffer it has
  std::map<std::int32_t, std::size_t> recv_of_;  // by tensor: the node that receives it
  std::map<int, std::size_t> taken_;             // by peer: number of messages received
  int micro_batches_ = 1;
  std::vector<std::string> suffixes_;  // by micro-batch
  bool split_ = false;                 // backward passes are in two parts (zero bubble)
  int micro_batch_ = -1;               // the micro-batch being issued; -1: none
  std::size_t received_ = 0;           // slots whose messages were received
  std::int32_t pairs_ = 0;             // pairs of slots issued so far
  std::int32_t half_ = -1;             // Instr::half of the instructions being issued
};

}  // namespace

Lowered lower(const Graph& graph, const Mesh& mesh, const LowerOptions& options) {
  return Lowering(graph, mesh, options).run();
}

std::map<int, std::vector<Message>> messages(const Graph& graph, const LowerOptions& options) {
  std::map<int, std::vector<Message>> lists;
  const auto collect = [&](std::size_t i, int micro_batch) {
    const auto* send = std::get_if<op::Send>(&graph.nodes[i].op);
    if (send != nullptr && options.wants(graph.nodes[i]))
      lists[send->peer].push_back({graph.nodes[i].inputs[0], micro_batch});
  };
  const auto collect_all = [&](Phase phase) {
    for (std::size_t i = 0; i < graph.nodes.size(); ++i)
      if (graph.nodes[i].phase == phase) collect(i, -1);
  };
  const SlotNodes nodes(graph);
  collect_all(Phase::kBegin);
  for (const Slot& slot : options.slots)
    for (const std::size_t i : nodes.of(slot)) collect(i, slot.micro_batch);
  collect_all(Phase::kUpdate);
  return lists;
}

}  // namespace hyperrun

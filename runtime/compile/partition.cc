#include "runtime/compile/partition.h"

#include <fmt/core.h>

#include <algorithm>
#include <deque>
#include <map>
#include <numeric>
#include <ranges>
#include <string>

#include "runtime/base/error.h"
#include "runtime/base/parallel.h"

namespace hyperrun {
namespace {

std::size_t at(int i) { return static_cast<std::size_t>(i); }

bool in_update(const Node& n) { return n.phase == Phase::kUpdate; }
bool at_begin(const Node& n) { return n.phase == Phase::kBegin; }
bool in_pass(const Node& n) { return n.phase == Phase::kForward || n.phase == Phase::kBackward; }

class Partition {
 public:
  Partition(const Graph& graph, AxisId axis, int devices, const PipelineSpec& pipeline)
      : graph_(graph),
        axis_(axis),
        devices_(devices),
        pipeline_(pipeline),
        holders_(graph.tensors.size()),
        made_on_(graph.tensors.size(), -1),
        made_in_(graph.tensors.size(), nullptr),
        there_(graph.tensors.size()),
        of_all_(graph.tensors.size(), false) {
    for (int d = 0; d < devices; ++d) out_.push_back({graph.dims, graph.tensors, {}, {}, graph.layouts});
  }

  std::vector<Graph> run() {
    find_sources();
    find_holders();
    put_caches();
    for (const Node& n : graph_.nodes) place(n);
    for (int d = 0; d < devices_; ++d)
      for (const auto& output : graph_.outputs)
        if (is_there(output.second, d)) out_[at(d)].outputs.push_back(output);
    parallel_for(out_.size(), [&](std::size_t d) { verify(out_[d]); });
    return std::move(out_);
  }

 private:
  // True for nodes that are repeated on each device that uses them instead of sending their result. They load
  // tokens, compute positions, slice one of these or a table, or gather a weight for one pass (ZeRO-3). A
  // gathered weight would be sent with every micro-batch, to a stage that waits for it last of all: the
  // sender would wait for ever.
  bool is_source(const Node& n) const { return uses_of_sources_.contains(&n); }

  bool is_weight(TensorId t) const {
    return graph_[t].cls == TensorClass::kWeight || graph_[t].cls == TensorClass::kCopy;
  }
  bool redistributes(const Node& n) const {
    return std::ranges::all_of(n.outputs,
                               [&](TensorId t) { return graph_[t].cls == TensorClass::kExchanged; });
  }

  void find_sources() {
    std::vector<const Node*> source_of(graph_.tensors.size());
    std::vector<bool> gathered(graph_.tensors.size(), false);
    for (const Node& n : graph_.nodes) {
      if (!in_pass(n)) continue;
      const bool gathers = redistributes(n) && std::ranges::all_of(n.inputs, [&](TensorId t) {
                             return is_weight(t) || gathered[t.index()];
                           });
      const bool source = std::ranges::all_of(n.inputs, [&](TensorId t) {
        return graph_[t].cls == TensorClass::kConstant ||
               (source_of[t.index()] != nullptr && !gathered[t.index()]);
      });
      if (!source && !gathers) continue;
      uses_of_sources_[&n];
      for (TensorId t : n.outputs) source_of[t.index()] = &n, gathered[t.index()] = gathers;
    }
    for (const Node& n : graph_.nodes | std::views::reverse)
      for (TensorId t : n.inputs)
        if (const Node* source = source_of[t.index()]; source != nullptr) use(*source, n);
  }

  void use(const Node& source, const Node& user) {
    const auto at_stage = [&](int device, int stage) {
      const auto [first, is_new] = uses_of_sources_[&source].try_emplace(device, stage);
      // The first stage in the order of the pass.
      first->second =
          source.phase == Phase::kForward ? std::min(first->second, stage) : std::max(first->second, stage);
    };
    if (!is_source(user)) return at_stage(device_of(user), stage_of(user));
    for (const auto& [device, stage] : uses_of_sources_.at(&user)) at_stage(device, stage);
  }

  int stage_of(const Node& n) const {
    const int last = static_cast<int>(pipeline_.stages.size()) - 1;
    if (n.layer < 0) return 0;
    int layers = 0;
    for (int v = 0; v <= last; ++v) {
      layers += pipeline_.stages[at(v)].layers;
      if (n.layer < layers) return v;
    }
    return last;
  }
  int device_of(const Node& n) const { return pipeline_.stages[at(stage_of(n))].device; }

  // Finds the devices that hold each state: those whose passes use it or copy it. State that only the update
  // uses is where the update runs.
  void find_holders() {
    for (const Node& n : graph_.nodes)
      if ((in_pass(n) || at_begin(n)) && !is_source(n)) {
        for (TensorId t : n.inputs) hold(t, device_of(n));
        for (TensorId t : n.outputs)
          if (graph_[t].updates.valid()) hold(t, device_of(n));
      }
    for (const Node& n : graph_.nodes)
      if (is_source(n))
        for (int device : users_of(n))
          for (TensorId t : n.inputs) hold(t, device);
    // State needed to initialise a held state is held as well.
    for (auto n = graph_.nodes.rbegin(); n != graph_.nodes.rend(); ++n)
      if (n->phase == Phase::kInit)
        for (int device : holders_[n->outputs[0].index()])
          for (TensorId t : n->inputs) hold(t, device);
    std::vector<int> value_on(graph_.tensors.size(), -1);  // device of each tensor computed from state
    for (const Node& n : graph_.nodes) {
      if (!in_update(n) || n.inputs.empty()) continue;
      const auto& holders = holders_[storage_of(graph_, n.inputs[0]).index()];
      const int device = holders.empty() ? value_on[n.inputs[0].index()] : holders.front();
      if (device < 0) continue;
      for (TensorId t : n.outputs) {
        value_on[t.index()] = device;
        if (graph_[t].updates.valid()) hold(t, device);
      }
    }
  }

  // A cache is with its layer from the start, because no node makes it.
  void put_caches() {
    for (std::size_t t = 0; t < graph_.tensors.size(); ++t)
      if (graph_.tensors[t].cls == TensorClass::kCache && !graph_.tensors[t].updates.valid())
        there_[t] = holders_[t];
  }

  void hold(TensorId t, int device) {
    auto& holders = holders_[storage_of(graph_, t).index()];
    if (std::find(holders.begin(), holders.end(), device) == holders.end()) holders.push_back(device);
  }

  // Devices of different stages share no tensor, so no collective may run along the pipeline's axis but those
  // of norms.
  void check_axes(const Node& n) const {
    for (TensorId t : n.outputs)
      HR_CHECK(!graph_.layouts[t.index()].split_axes().has(axis_), n.name + " splits over the stages");
  }

  void place(const Node& n) {
    check_axes(n);
    const std::vector<int> devices = devices_of(n);
    if (in_update(n) && devices.size() > 1)
      for (TensorId t : n.outputs) of_all_[t.index()] = true;
    for (int d : devices) {
      Node placed = n;
      placed.stage = in_pass(n) ? stage_of(n) : 0;
      if (std::holds_alternative<op::SumSquares>(n.op))
        std::erase_if(placed.inputs, [&](TensorId t) { return made_on_[t.index()] != d; });
      for (TensorId t : placed.inputs) bring(t, d, placed);
      if (n.addend.valid() && !is_there(n.addend, d)) {
        add_later(placed, d);
        continue;
      }
      append(std::move(placed), d, n);
    }
    for (TensorId t : n.outputs)
      if (graph_[t].updates.valid()) refresh(t);
  }

  std::vector<int> devices_of(const Node& n) const {
    if (n.phase == Phase::kInit) return holders_[n.outputs[0].index()];
    if (is_source(n)) return users_of(n);
    if (in_pass(n) || at_begin(n)) return {device_of(n)};
    if (!std::holds_alternative<op::SumSquares>(n.op))
      for (TensorId t : n.inputs)
        if (!of_all_[t.index()]) return {made_on_[t.index()]};
    return all();
  }

  std::vector<int> all() const {
    std::vector<int> list(static_cast<std::size_t>(devices_));
    std::iota(list.begin(), list.end(), 0);
    return list;
  }

  std::vector<int> users_of(const Node& source) const {
    std::vector<int> devices;
    for (const auto& [device, stage] : uses_of_sources_.at(&source)) devices.push_back(device);
    return devices;
  }

  bool is_there(TensorId t, int device) const {
    const auto& there = there_[t.index()];
    return std::find(there.begin(), there.end(), device) != there.end();
  }

  void append(Node placed, int device, const Node& original) {
    if (is_source(original)) placed.stage = uses_of_sources_.at(&original).at(device);
    for (TensorId t : placed.outputs) {
      there_[t.index()].push_back(device);
      if (made_on_[t.index()] < 0) made_on_[t.index()] = device, made_in_[t.index()] = &original;
    }
    out_[at(device)].nodes.push_back(std::move(placed));
  }

  // Makes `t` available to `user` on `device`, by a message if needed.
  void bring(TensorId t, int device, const Node& user) {
    if (is_there(t, device)) return;
    const Node& maker = *made_in_[t.index()];
    const bool whole = is_accumulated(graph_[t].cls);  // complete after the last micro-batch
    if (at_begin(maker)) return send(t, device, Phase::kBegin, 0, Phase::kBegin, 0);
    send(t, device, whole ? Phase::kUpdate : maker.phase, whole ? 0 : stage_of(maker),
         whole ? Phase::kUpdate : user.phase, whole ? 0 : user.stage);
  }

  void send(TensorId t, int device, Phase sent, int sent_stage, Phase received, int received_stage) {
    const int from = made_on_[t.index()];
    HR_CHECK(from >= 0 && from != device, graph_[t].name);
    const std::string& name = graph_[t].name;
    // A tensor that goes to several devices is sent by several nodes.
    const std::size_t already = there_[t.index()].size() - 1;
    const std::string which = already > 0 ? std::to_string(already + 1) : "";
    const std::string why =
        fmt::format("{} {} uses what {} {} makes", pipeline_.axis, device, pipeline_.axis, from);
    out_[at(from)].nodes.push_back(
        {name + ".Send" + which, op::Send{axis_, device}, {t}, {}, {}, sent, -1, sent_stage, why});
    out_[at(device)].nodes.push_back(
        {name + ".Recv", op::Recv{axis_, from}, {}, {t}, {}, received, -1, received_stage, why});
    there_[t.index()].push_back(device);
  }

  // Handles a sum over micro-batches whose addend is on another device: it is summed up here separately, and
  // both are added when they are complete.
  void add_later(Node placed, int device) {
    const TensorId sum = placed.outputs[0], other = placed.addend;
    HR_CHECK(is_accumulated(graph_[sum].cls), placed.name);
    Tensor own = graph_[sum];
    own.name += ".own";
    const TensorId mine = new_tensor(own, graph_.layouts[sum.index()]);
    const Node add{placed.name + ".add", op::Add{}, {mine, other}, {sum}, {}, Phase::kUpdate};
    placed.addend = {};
    placed.outputs[0] = mine;
    const Node& original = originals_.emplace_back(placed);
    append(placed, device, original);
    bring(other, device, add);
    append(add, device, originals_.emplace_back(add));
  }

  // Adds a tensor to all graphs, because all have the same tensors.
  TensorId new_tensor(const Tensor& tensor, const Layout& layout) {
    TensorId id;
    for (Graph& g : out_) {
      id = g.add_tensor(tensor);
      g.layouts.push_back(layout);
    }
    holders_.emplace_back();
    made_on_.push_back(-1);
    made_in_.push_back(nullptr);
    there_.emplace_back();
    of_all_.push_back(false);
    return id;
  }

  // Sends a new value of a state to all other devices that hold it.
  void refresh(TensorId t) {
    for (int d : holders_[storage_of(graph_, t).index()])
      if (!is_there(t, d)) send(t, d, Phase::kUpdate, 0, Phase::kUpdate, 0);
  }

  const Graph& graph_;
  AxisId axis_;
  int devices_;
  const PipelineSpec& pipeline_;
  std::vector<Graph> out_;
  std::vector<std::vector<int>> holders_;  // by tensor of a state: devices that have it, its owner first
  std::vector<int> made_on_;               // by tensor: device
  std::vector<const Node*> made_in_;       // by tensor: node
  std::vector<std::vector<int>> there_;    // by tensor: devices that have it
  std::vector<bool> of_all_;               // by tensor: all devices compute it together (norms)
  std::map<const Node*, std::map<int, int>> uses_of_sources_;  // by node and device: its first stage
  std::deque<Node> originals_;                                 // nodes that this pass has made
};

}  // namespace

std::vector<Graph> partition(const Graph& graph, const Mesh& mesh, const PipelineSpec& pipeline) {
  if (pipeline.axis.empty()) return {graph};
  const AxisId axis = mesh.find(pipeline.axis);
  HR_CHECK(axis >= 0, pipeline.axis);
  return Partition(graph, axis, static_cast<int>(mesh.size(axis)), pipeline).run();
}

}  // namespace hyperrun

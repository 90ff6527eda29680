#include "runtime/compile/recompute.h"

#include <algorithm>
#include <map>
#include <set>
#include <vector>

#include "runtime/base/error.h"

namespace hyperrun {
namespace {

enum class Policy : std::uint8_t { kNone, kSelective, kFull };

Policy policy_of(const std::string& name) {
  HR_CHECK(name == "none" || name == "selective" || name == "full", name);
  return name == "full" ? Policy::kFull : name == "selective" ? Policy::kSelective : Policy::kNone;
}

bool is_forward(const Node& n) { return n.phase == Phase::kForward; }

bool is_cheap(const GraphOp& op) {
  return !is_collective(op) && !std::holds_alternative<op::Matmul>(op) &&
         !std::holds_alternative<op::Attention>(op) && !std::holds_alternative<op::AttentionStep>(op);
}

class Recomputation {
 public:
  Recomputation(Graph& graph, const std::vector<RecomputeSpec>& specs)
      : graph_(graph), producer_(graph.tensors.size(), -1), kept_(graph.tensors.size(), false) {
    for (const Node& n : graph.nodes)
      policies_.resize(std::max(policies_.size(), static_cast<std::size_t>(n.layer + 1)), Policy::kNone);
    for (const RecomputeSpec& s : specs)
      for (std::int32_t l = s.first_layer; l <= s.last_layer && l < std::ssize(policies_); ++l)
        policies_[static_cast<std::size_t>(l)] = policy_of(s.policy);
    source_ = std::move(graph_.nodes);
    graph_.nodes.clear();
  }

  void run() {
    find_kept();
    for (const Node& node : source_) {
      if (is_forward(node))
        graph_.nodes.push_back(node);
      else
        place(node);
    }
  }

 private:
  // --- what is kept -------------------------------------------------------------------------------

  void find_kept() {
    for (std::size_t i = 0; i < source_.size(); ++i)
      if (is_forward(source_[i]))
        for (TensorId t : source_[i].outputs) producer_[t.index()] = static_cast<int>(i);
    for (const auto& [name, t] : graph_.outputs) kept_[t.index()] = true;
    std::vector<bool> read_backward(graph_.tensors.size(), false);
    for (const Node& n : source_)
      for (TensorId t : n.inputs) {
        if (n.phase == Phase::kUpdate) kept_[t.index()] = true;  // sums that no backward pass reads
        if (!is_forward(n))
          read_backward[t.index()] = true;
        else if (producer_[t.index()] >= 0 && producer(t).layer != n.layer)
          kept_[t.index()] = true;
      }
    for (const Node& n : source_)
      if (is_forward(n)) keep_outputs(n, read_backward);
  }

  // Decides about a node's outputs. Nodes come in the order of the forward pass, so its inputs are decided.
  void keep_outputs(const Node& n, const std::vector<bool>& read_backward) {
    const Policy policy = n.layer < 0 ? Policy::kNone : policies_[static_cast<std::size_t>(n.layer)];
    if (policy == Policy::kFull) return;
    const bool again = policy == Policy::kSelective && is_cheap(n.op) && is_worth_it(n) &&
                       std::all_of(n.inputs.begin(), n.inputs.end(), [&](TensorId t) {
                         return producer_[t.index()] < 0 || (kept_[t.index()] && read_backward[t.index()]);
                       });
    for (TensorId t : n.outputs) kept_[t.index()] = kept_[t.index()] || !again;
  }

  bool is_worth_it(const Node& n) const {
    std::int64_t most = 0;
    for (TensorId t : n.inputs) most = std::max(most, graph_.elements(t));
    return graph_.elements(n.outputs[0]) >= most;
  }

  const Node& producer(TensorId t) const { return source_[static_cast<std::size_t>(producer_[t.index()])]; }

  // --- what is computed again ---------------------------------------------------------------------

  void place(Node n) {
    for (TensorId& t : n.inputs) t = available(t);
    if (n.addend.valid()) n.addend = available(n.addend);
    append(std::move(n));
  }

  // Appends a node, unless it is a redistribution that is there already: a repeated operator and its gradient
  // often need the same one, mostly of a weight. Shifts round a ring are not shared: keeping their results
  // would take memory for the whole sequence.
  void append(Node n) {
    const bool redistributes = (is_collective(n.op) && !std::holds_alternative<op::Shift>(n.op)) ||
                               std::holds_alternative<op::Slice>(n.op);
    if (redistributes && n.phase == Phase::kBackward && n.layer >= 0 &&
        policies_[static_cast<std::size_t>(n.layer)] != Policy::kNone) {
      for (const std::size_t earlier : redistributions_[n.inputs[0].value]) {
        const Node& made = graph_.nodes[earlier];
        if (made.op != n.op || made.layer != n.layer) continue;
        again_[n.outputs[0].value] = made.outputs[0];
        return;
      }
      redistributions_[n.inputs[0].value].push_back(graph_.nodes.size());
    }
    graph_.nodes.push_back(std::move(n));
  }

  // The tensor that replaces `t` in the backward pass: itself if it is kept, else a recomputed copy. Appends
  // the nodes that compute the copy if they are missing.
  TensorId available(TensorId t) {
    std::set<int> missing;
    find_missing(t, missing);
    for (const int node : missing) compute_again(source_[static_cast<std::size_t>(node)]);
    return stand_in(t);
  }

  TensorId stand_in(TensorId t) const {
    for (auto known = again_.find(t.value); known != again_.end(); known = again_.find(t.value))
      t = known->second;
    return t;
  }

  // The forward nodes that must be repeated for `t`, in their order. A message that was sent ahead is sent
  // ahead again.
  void find_missing(TensorId t, std::set<int>& missing) const {
    t = stand_in(t);
    if (t.index() >= producer_.size() || producer_[t.index()] < 0 || kept_[t.index()]) return;
    if (!missing.insert(producer_[t.index()]).second) return;
    for (const TensorId input : producer(t).inputs) find_missing(input, missing);
  }

  void compute_again(Node n) {
    HR_CHECK(!n.addend.valid(), n.name);
    n.name += ".again";
    if (!n.reason.empty()) n.reason += ", computed again";
    n.phase = Phase::kBackward;
    n.again = true;
    for (TensorId& output : n.outputs) {
      Tensor copy = graph_[output];
      copy.name += ".again";
      const TensorId id = graph_.add_tensor(std::move(copy));
      const Layout layout = graph_.layouts[output.index()];
      graph_.layouts.push_back(layout);
      again_[output.value] = id;
      output = id;
    }
    place(std::move(n));
  }

  Graph& graph_;
  std::vector<Node> source_;
  std::vector<Policy> policies_;  // by layer
  std::vector<int> producer_;     // by tensor: its node in the forward pass
  std::vector<bool> kept_;
  std::map<std::int32_t, TensorId> again_;  // by tensor: its replacement
  std::map<std::int32_t, std::vector<std::size_t>>
      redistributions_;  // by tensor: its redistributions in the backward pass
};

}  // namespace

void recompute(Graph& graph, const std::vector<RecomputeSpec>& specs) {
  if (specs.empty()) return;
  Recomputation(graph, specs).run();
  verify(graph);
}

}  // namespace hyperrun

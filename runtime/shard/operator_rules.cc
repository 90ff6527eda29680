#include "runtime/shard/operator_rules.h"

namespace hyperrun {
namespace {

DimId last_dim(const Graph& graph, TensorId t) { return graph[t].dims.back(); }

class Rules {
 public:
  Rules(const Graph& graph, const Node& node) : graph_(graph), node_(node) {}

  OperatorRule operator()(const op::RopeTable&) const {
    return {.whole = {last_dim(graph_, node_.outputs[0])}};
  }
  OperatorRule operator()(const op::LoadRequests&) const {
    return {.whole = {last_dim(graph_, node_.outputs[1])}};
  }
  // Items alone are shared out.
  OperatorRule operator()(const op::LoadVectors&) const {
    const std::vector<DimId>& dims = graph_[node_.outputs[0]].dims;
    return {.whole = {dims[1], dims[2]}};
  }
  OperatorRule operator()(const op::LoadPort&) const { return {.whole = {graph_[node_.inputs[0]].dims[0]}}; }
  OperatorRule operator()(const op::StorePort&) const { return {.whole = {graph_[node_.inputs[1]].dims[0]}}; }
  OperatorRule operator()(const op::Embedding&) const { return table(node_.inputs[1]); }
  OperatorRule operator()(const op::EmbeddingGrad&) const { return table(node_.outputs[0]); }
  OperatorRule operator()(const op::Rope&) const { return last_whole(); }
  OperatorRule operator()(const op::Join&) const { return last_whole(); }
  OperatorRule operator()(const op::JoinGrad&) const { return last_whole(); }
  OperatorRule operator()(const op::Attention&) const { return attention(); }
  // Each sequence with its pages, each head for itself.
  OperatorRule operator()(const op::CachedAttention&) const {
    const Tensor &q = graph_[node_.inputs[0]], &keys = graph_[node_.inputs[4]];
    const DimId pages = keys.dims[1], page = keys.dims[keys.dims.size() - 3];
    return {.whole = {q.dims[1], q.dims[3], q.dims[4], last_dim(graph_, node_.inputs[2]),
                      last_dim(graph_, node_.inputs[3]), pages, page},
            .instead = {q.dims[2]}};
  }
  // Each row with all its parts: what splits the parts goes to the sequence, if that is wanted split.
  OperatorRule operator()(const op::MergeParts&) const {
    const Tensor& parts = graph_[node_.inputs[0]];  // [part, batch, seq, ...]
    return {.whole = {parts.dims[0]}, .instead = {parts.dims[2]}};
  }
  OperatorRule operator()(const op::AttentionGrad&) const { return attention(); }
  // m' and s' are each device's own, relative to its own maximum: m' reduces by max, s' not at all (it
  // is only ever rescaled as it lies).
  OperatorRule operator()(const op::SoftmaxStats&) const {
    return {.reduction = {Reduction::kSum, Reduction::kMax, Reduction::kMax, Reduction::kSum}, .own = {0, 2}};
  }
  OperatorRule operator()(const op::RescaleSums&) const {
    return {.as_it_lies = {0, 1}, .partial_from = {0}};
  }
  OperatorRule operator()(const op::CrossEntropyGrad&) const { return {.as_it_lies = {0, 1}}; }
  // A token's experts are compared, and its rows sent and collected, where the token is, whole.
  // Where experts have a capacity, tokens are compared with those before them as well.
  OperatorRule operator()(const op::Route& op) const {
    const Tensor& logits = graph_[node_.inputs[0]];  // [batch, seq, experts]
    if (op.capacity == 0) return {.whole = {logits.dims[2]}};
    return {.whole = {logits.dims[1], logits.dims[2]}};
  }
  OperatorRule operator()(const op::RouteGrad&) const {
    return {.whole = {last_dim(graph_, node_.inputs[0])}};
  }
  // Each expert's load is compared with the mean of all.
  OperatorRule operator()(const op::Balance&) const { return {.whole = {last_dim(graph_, node_.inputs[0])}}; }
  OperatorRule operator()(const op::Dispatch&) const { return rows_of(node_.outputs[0], node_.inputs[1]); }
  // Linear in the rows: where experts are split in their width, tokens are summed up before parts are.
  OperatorRule operator()(const op::Combine&) const {
    OperatorRule rule = rows_of(node_.inputs[0], node_.inputs[1]);
    rule.as_it_lies = {0};
    rule.partial_from = {0};
    return rule;
  }
  OperatorRule operator()(const op::CombineGrad&) const {  // -> gradients of rows, and of gates
    OperatorRule rule = rows_of(node_.inputs[1], node_.inputs[2]);
    rule.as_it_lies = {1};
    rule.partial_from = {-1, 1};
    return rule;
  }
  // Linear: the gradient of a norm's bias wants no exchange of what the norm's own does with.
  OperatorRule operator()(const op::SumRows&) const { return {.as_it_lies = {0}, .partial_from = {0}}; }
  OperatorRule operator()(const op::Sample&) const { return {.whole = {last_dim(graph_, node_.inputs[0])}}; }
  template <class Op>
  OperatorRule operator()(const Op&) const {
    return {};
  }

 private:
  // Of every operand.
  OperatorRule last_whole() const {
    OperatorRule rule;
    for (TensorId t : node_.inputs) rule.whole.push_back(last_dim(graph_, t));
    for (TensorId t : node_.outputs) rule.whole.push_back(last_dim(graph_, t));
    return rule;
  }

  // Rows are counted through all dimensions but the last: no other than the first can be split.
  OperatorRule table(TensorId t) const {
    const std::vector<DimId>& dims = graph_[t].dims;
    return {.whole = {dims.begin() + 1, dims.end() - 1}};
  }

  OperatorRule rows_of(TensorId rows, TensorId ids) const {
    return {.whole = {graph_[rows].dims[0], graph_[rows].dims.back(), last_dim(graph_, ids)},
            .back_to = graph_[rows].counts,
            .rows = graph_[rows].counts};
  }

  // Every query sees the keys before it, or all, each head for itself: what splits the sequence moves to the
  // heads (Ulysses; Jacobs et al. 2023), and back where the next operator wants it. Or keys and values go
  // round.
  OperatorRule attention() const {
    const Tensor& q = graph_[node_.inputs[0]];  // [batch, seq, kv_heads, group, head_dim]
    return {.whole = {q.dims[1], q.dims.back(), last_dim(graph_, node_.inputs[2])},
            .instead = {q.dims[2], q.dims[3]},
            .ring = q.dims[1]};
  }

  const Graph& graph_;
  const Node& node_;
};

}  // namespace

OperatorRule operator_rule(const Graph& graph, const Node& node) {
  return std::visit(Rules(graph, node), node.op);
}

}  // namespace hyperrun

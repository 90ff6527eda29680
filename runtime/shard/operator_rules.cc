#include "runtime/shard/operator_rules.h"

namespace hyperrun {
namespace {

DimId last_dim(const Graph& graph, TensorId t) { return graph[t].dims.back(); }

class RuleVisitor {
 public:
  RuleVisitor(const Graph& graph, const Node& node) : graph_(graph), node_(node) {}

  OperatorRule operator()(const op::RopeTable&) const {
    return {.must_replicate = {last_dim(graph_, node_.outputs[0])}};
  }
  OperatorRule operator()(const op::LoadRequests&) const {
    return {.must_replicate = {last_dim(graph_, node_.outputs[1])}};
  }
  // Only the items may be split.
  OperatorRule operator()(const op::LoadVectors&) const {
    const std::vector<DimId>& dims = graph_[node_.outputs[0]].dims;
    return {.must_replicate = {dims[1], dims[2]}};
  }
  OperatorRule operator()(const op::LoadPort&) const {
    return {.must_replicate = {graph_[node_.inputs[0]].dims[0]}};
  }
  OperatorRule operator()(const op::StorePort&) const {
    return {.must_replicate = {graph_[node_.inputs[1]].dims[0]}};
  }
  OperatorRule operator()(const op::Embedding&) const { return table(node_.inputs[1]); }
  OperatorRule operator()(const op::EmbeddingGrad&) const { return table(node_.outputs[0]); }
  OperatorRule operator()(const op::Rope&) const { return replicate_last(); }
  OperatorRule operator()(const op::Join&) const { return replicate_last(); }
  OperatorRule operator()(const op::JoinGrad&) const { return replicate_last(); }
  OperatorRule operator()(const op::Attention&) const { return attention(); }
  // Splits between sequences, which own their pages, and between heads.
  OperatorRule operator()(const op::CachedAttention&) const {
    const Tensor &q = graph_[node_.inputs[0]], &keys = graph_[node_.inputs[4]];
    const DimId pages = keys.dims[1], page = keys.dims[keys.dims.size() - 3];
    return {.must_replicate = {q.dims[1], q.dims[3], q.dims[4], last_dim(graph_, node_.inputs[2]),
                               last_dim(graph_, node_.inputs[3]), pages, page},
            .redirect_to = {q.dims[2]}};
  }
  // A row needs all its parts. An axis that splits the parts may move to the sequence.
  OperatorRule operator()(const op::MergeParts&) const {
    const Tensor& parts = graph_[node_.inputs[0]];  // [part, batch, seq, ...]
    return {.must_replicate = {parts.dims[0]}, .redirect_to = {parts.dims[2]}};
  }
  OperatorRule operator()(const op::AttentionGrad&) const { return attention(); }
  // m' and s' are relative to each device's own maximum. m' is reduced by max. s' is never reduced: it is
  // only rescaled in place.
  OperatorRule operator()(const op::SoftmaxStats&) const {
    return {.reduction = {Reduction::kSum, Reduction::kMax, Reduction::kMax, Reduction::kSum},
            .local_outputs = {0, 2}};
  }
  OperatorRule operator()(const op::RescaleSums&) const { return {.keep_partial = {0, 1}, .linear_in = {0}}; }
  OperatorRule operator()(const op::CrossEntropyGrad&) const { return {.keep_partial = {0, 1}}; }
  // A token's experts are compared on the device of the token, so their dimension is replicated. With a
  // capacity, tokens are also compared with earlier tokens of the sequence.
  OperatorRule operator()(const op::Route& op) const {
    const Tensor& logits = graph_[node_.inputs[0]];  // [batch, seq, experts]
    if (op.capacity == 0) return {.must_replicate = {logits.dims[2]}};
    return {.must_replicate = {logits.dims[1], logits.dims[2]}};
  }
  OperatorRule operator()(const op::RouteGrad&) const {
    return {.must_replicate = {last_dim(graph_, node_.inputs[0])}};
  }
  // Each expert's load is compared with the mean of all experts.
  OperatorRule operator()(const op::Balance&) const {
    return {.must_replicate = {last_dim(graph_, node_.inputs[0])}};
  }
  OperatorRule operator()(const op::Dispatch&) const { return rows_of(node_.outputs[0], node_.inputs[1]); }
  // Linear in the rows. If the width of experts is split, each token's rows are summed before the partial
  // sums are reduced.
  OperatorRule operator()(const op::Combine&) const {
    OperatorRule rule = rows_of(node_.inputs[0], node_.inputs[1]);
    rule.keep_partial = {0};
    rule.linear_in = {0};
    return rule;
  }
  OperatorRule operator()(const op::CombineGrad&) const {  // outputs: gradients of rows and of gates
    OperatorRule rule = rows_of(node_.inputs[1], node_.inputs[2]);
    rule.keep_partial = {1};
    rule.linear_in = {-1, 1};
    return rule;
  }
  // Linear: the gradient of a norm's bias takes the partial input that the norm's own gradient takes.
  OperatorRule operator()(const op::SumRows&) const { return {.keep_partial = {0}, .linear_in = {0}}; }
  OperatorRule operator()(const op::Sample&) const {
    return {.must_replicate = {last_dim(graph_, node_.inputs[0])}};
  }
  template <class Op>
  OperatorRule operator()(const Op&) const {
    return {};
  }

 private:
  // Replicates the last dimension of every operand.
  OperatorRule replicate_last() const {
    OperatorRule rule;
    for (TensorId t : node_.inputs) rule.must_replicate.push_back(last_dim(graph_, t));
    for (TensorId t : node_.outputs) rule.must_replicate.push_back(last_dim(graph_, t));
    return rule;
  }

  // Row numbers run over all dimensions but the last, so of these only the first can be split.
  OperatorRule table(TensorId t) const {
    const std::vector<DimId>& dims = graph_[t].dims;
    return {.must_replicate = {dims.begin() + 1, dims.end() - 1}};
  }

  OperatorRule rows_of(TensorId rows, TensorId ids) const {
    return {.must_replicate = {graph_[rows].dims[0], graph_[rows].dims.back(), last_dim(graph_, ids)},
            .redirect_like = graph_[rows].counts,
            .row_counts = graph_[rows].counts};
  }

  // Heads are independent, but a query needs the keys of the whole sequence. An axis that splits the sequence
  // moves to the heads (Ulysses, Jacobs et al. 2023) and back for the next operator; or keys and values pass
  // round a ring.
  OperatorRule attention() const {
    const Tensor& q = graph_[node_.inputs[0]];  // [batch, seq, kv_heads, group, head_dim]
    return {.must_replicate = {q.dims[1], q.dims.back(), last_dim(graph_, node_.inputs[2])},
            .redirect_to = {q.dims[2], q.dims[3]},
            .ring_dim = q.dims[1]};
  }

  const Graph& graph_;
  const Node& node_;
};

}  // namespace

OperatorRule operator_rule(const Graph& graph, const Node& node) {
  return std::visit(RuleVisitor(graph, node), node.op);
}

}  // namespace hyperrun

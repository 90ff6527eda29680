#include "runtime/shard/operator_rules.h"

namespace hyperrun {
namespace {

DimId last_dim(const Graph& graph, TensorId t) { return graph[t].dims.back(); }

class Rules {
 public:
  Rules(const Graph& graph, const Node& node) : graph_(graph), node_(node) {}

  OperatorRule operator()(const op::RmsNorm&) const { return {{last_dim(graph_, node_.inputs[0])}, {}, {}}; }
  OperatorRule operator()(const op::RmsNormGrad&) const {
    return {{last_dim(graph_, node_.inputs[1])}, {}, {}};
  }
  OperatorRule operator()(const op::RopeTable&) const {
    return {{last_dim(graph_, node_.outputs[0])}, {}, {}};
  }
  OperatorRule operator()(const op::Rope&) const { return {{last_dim(graph_, node_.inputs[0])}, {}, {}}; }
  OperatorRule operator()(const op::Attention&) const { return attention(); }
  OperatorRule operator()(const op::AttentionGrad&) const { return attention(); }
  // m' and s' are each device's own, relative to its own maximum: m' reduces by max, s' not at all (it
  // is only ever rescaled as it lies).
  OperatorRule operator()(const op::SoftmaxStats&) const {
    return {{}, {}, {Reduction::kSum, Reduction::kMax, Reduction::kMax, Reduction::kSum}};
  }
  OperatorRule operator()(const op::RescaleSums&) const { return {{}, {0, 1}, {}, 0}; }
  OperatorRule operator()(const op::CrossEntropyGrad&) const { return {{}, {1}, {}}; }
  OperatorRule operator()(const op::Sample&) const {
    return {{last_dim(graph_, node_.inputs[0]), last_dim(graph_, node_.inputs[1])}, {}, {}};
  }
  template <class Op>
  OperatorRule operator()(const Op&) const {
    return {};
  }

 private:
  OperatorRule attention() const {
    const Tensor& q = graph_[node_.inputs[0]];
    return {{q.dims[1], q.dims.back()}, {}, {}};  // [batch, seq, kv_heads, group, head_dim]
  }

  const Graph& graph_;
  const Node& node_;
};

}  // namespace

OperatorRule operator_rule(const Graph& graph, const Node& node) {
  return std::visit(Rules(graph, node), node.op);
}

}  // namespace hyperrun

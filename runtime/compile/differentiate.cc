#include "runtime/compile/differentiate.h"

#include <algorithm>
#include <map>

#include "runtime/base/any_of.h"
#include "runtime/base/error.h"

namespace hyperrun {
namespace {

class Backward {
 public:
  explicit Backward(Graph& graph) : graph_(graph) {}

  std::vector<WeightGradient> run() {
    const std::size_t forward_nodes = graph_.nodes.size();
    for (std::size_t i = forward_nodes; i-- > 0;) {
      const Node node = graph_.nodes[i];  // a copy: nodes are appended below
      if (node.phase == Phase::kForward) std::visit([&](const auto& op) { visit(op, node); }, node.op);
    }
    std::vector<WeightGradient> weights;
    for (std::size_t t = 0; t < graph_.tensors.size(); ++t) {
      const TensorId id(static_cast<std::int64_t>(t));
      if (graph_[id].cls == TensorClass::kWeight && of(id).valid()) weights.emplace_back(id, of(id));
    }
    return weights;
  }

 private:
  TensorId of(TensorId t) const {
    const auto it = gradient_.find(t.value);
    return it == gradient_.end() ? TensorId{} : it->second;
  }

  Tensor gradient_tensor(TensorId of_tensor) {
    const Tensor& t = graph_[of_tensor];
    const int n = ++versions_[of_tensor.value];
    Tensor gradient{t.name + ".grad" + (n > 1 ? std::to_string(n) : ""), DType::kF32, t.dims,
                    t.cls == TensorClass::kWeight ? TensorClass::kGradient : TensorClass::kActivation};
    gradient.counts = t.counts;
    gradient.choices = t.choices;
    gradient.capacity = t.capacity;
    gradient.group = t.group;
    return gradient;
  }

  std::vector<TensorId> emit(const Node& forward, GraphOp op, std::vector<TensorId> inputs,
                             std::vector<Tensor> outs, TensorId addend = {}) {
    const int n = ++emitted_[forward.name];
    return graph_.add_node({forward.name + ".grad" + (n > 1 ? std::to_string(n) : ""),
                            std::move(op),
                            std::move(inputs),
                            {},
                            addend,
                            Phase::kBackward,
                            forward.layer},
                           std::move(outs));
  }

  // Adds a contribution that is a tensor already.
  void contribute(const Node& forward, TensorId to, TensorId value) {
    const TensorId before = of(to);
    gradient_[to.value] =
        before.valid() ? emit(forward, op::Add{}, {before, value}, {gradient_tensor(to)})[0] : value;
  }

  // Adds a contribution of an operator that can accumulate into the earlier sum (Node::addend).
  void contribute(const Node& forward, TensorId to, GraphOp op, std::vector<TensorId> inputs) {
    gradient_[to.value] = emit(forward, std::move(op), std::move(inputs), {gradient_tensor(to)}, of(to))[0];
  }

  void visit(const op::Matmul&, const Node& n) {
    const TensorId dout = of(n.outputs[0]);
    if (!dout.valid()) return;
    const TensorId a = n.inputs[0], b = n.inputs[1];
    // The input's gradient comes first: its redistribution then hides behind the weight gradient's product.
    contribute(n, a, op::Matmul{}, with_counts({dout, b}, n, 2));
    // A weight is [in, out], or transposed [out, in].
    const bool transposed = !graph_.has_dim(dout, graph_[b].dims.front());
    const TensorId left = transposed ? a : dout, right = transposed ? dout : a;
    contribute(n, b, op::Matmul{}, with_counts({left, right}, n, 2));
  }

  // `inputs` plus the counts, if `n` is about rows of experts: these follow its first `own` inputs.
  static std::vector<TensorId> with_counts(std::vector<TensorId> inputs, const Node& n, std::size_t own) {
    if (n.inputs.size() > own) inputs.push_back(n.inputs[own]);
    return inputs;
  }

  void visit(const op::Embedding&, const Node& n) {
    if (of(n.outputs[0]).valid())
      contribute(n, n.inputs[1], op::EmbeddingGrad{}, {n.inputs[0], of(n.outputs[0])});
  }

  // Includes the gradient through the sums: the third input and the fourth are computed from the first.
  void visit(const op::Norm& op, const Node& n) {
    const TensorId dy = of(n.outputs[0]), x = n.inputs[0], w = n.inputs[1];
    if (!dy.valid()) return;
    std::vector<DimId> row_dims = graph_[x].dims;
    row_dims.pop_back();
    std::vector<Tensor> sums{Tensor{n.name + ".dots", DType::kF32, row_dims}};
    std::vector<TensorId> summed{dy, x, w}, inputs{dy, x, w, n.inputs[2]};
    if (op.centered) {
      sums.push_back(Tensor{n.name + ".dot_sums", DType::kF32, row_dims});
      summed.push_back(n.inputs[3]);
    }
    const std::vector<TensorId> dots = emit(n, op::NormDots{op.centered}, summed, std::move(sums));
    inputs.push_back(dots[0]);
    if (op.centered) inputs.insert(inputs.end(), {n.inputs[3], dots[1]});
    if (of(x).valid()) inputs.push_back(of(x));
    HR_CHECK(!of(w).valid(), "a norm weight with two uses");
    const auto out =
        emit(n, op::NormGrad{op.eps, op.centered}, inputs, {gradient_tensor(x), gradient_tensor(w)});
    gradient_[x.value] = out[0];
    gradient_[w.value] = out[1];
    if (op.centered) contribute(n, n.inputs[4], op::SumRows{}, {dy});
  }

  void visit(const op::Rope& op, const Node& n) {
    const TensorId dy = of(n.outputs[0]);
    if (dy.valid())
      contribute(n, n.inputs[0],
                 emit(n, op::Rope{!op.inverse, op.neighbours, op.first}, {dy, n.inputs[1]},
                      {gradient_tensor(n.inputs[0])})[0]);
  }

  void visit(const op::Join&, const Node& n) {
    const TensorId dout = of(n.outputs[0]);
    if (!dout.valid()) return;
    const auto out =
        emit(n, op::JoinGrad{}, {dout}, {gradient_tensor(n.inputs[0]), gradient_tensor(n.inputs[1])});
    for (std::size_t i = 0; i < 2; ++i) contribute(n, n.inputs[i], out[i]);
  }

  void visit(const op::Attention& op, const Node& n) {
    const TensorId d_o = of(n.outputs[0]);
    if (!d_o.valid()) return;
    const TensorId q = n.inputs[0], k = n.inputs[1], v = n.inputs[2];
    const auto out =
        emit(n, op::AttentionGrad{op.causal, op.window, op.scale}, {q, k, v, n.outputs[0], n.outputs[1], d_o},
             {gradient_tensor(q), gradient_tensor(k), gradient_tensor(v)});
    for (std::size_t i = 0; i < 3; ++i) contribute(n, n.inputs[i], out[i]);
  }

  void visit(const op::Gelu&, const Node& n) {
    const TensorId dy = of(n.outputs[0]), x = n.inputs[0];
    if (dy.valid()) contribute(n, x, emit(n, op::GeluGrad{}, {x, dy}, {gradient_tensor(x)})[0]);
  }

  void visit(const op::SwiGlu&, const Node& n) {
    const TensorId dh = of(n.outputs[0]);
    if (!dh.valid()) return;
    const auto out = emit(n, op::SwiGluGrad{}, with_counts({n.inputs[0], n.inputs[1], dh}, n, 2),
                          {gradient_tensor(n.inputs[0]), gradient_tensor(n.inputs[1])});
    contribute(n, n.inputs[0], out[0]);
    contribute(n, n.inputs[1], out[1]);
  }

  void visit(const op::Route& op, const Node& n) {
    const TensorId dgates = of(n.outputs[0]);
    if (!dgates.valid()) return;
    const TensorId logits = n.inputs[0];
    std::vector<TensorId> inputs{logits, n.outputs[1], dgates};
    if (op.aux != 0) inputs.push_back(n.outputs[2]);
    contribute(n, logits, emit(n, op::RouteGrad{op}, std::move(inputs), {gradient_tensor(logits)})[0]);
  }

  void visit(const op::Dispatch&, const Node& n) {
    const TensorId drows = of(n.outputs[0]);
    if (drows.valid())
      contribute(n, n.inputs[0],
                 emit(n, op::Combine{}, {drows, n.inputs[1]}, {gradient_tensor(n.inputs[0])})[0]);
  }

  void visit(const op::Combine&, const Node& n) {
    const TensorId dy = of(n.outputs[0]);
    if (!dy.valid()) return;
    const TensorId rows = n.inputs[0], gates = n.inputs[2];
    const auto out = emit(n, op::CombineGrad{}, {dy, rows, n.inputs[1], gates},
                          {gradient_tensor(rows), gradient_tensor(gates)});
    contribute(n, rows, out[0]);
    contribute(n, gates, out[1]);
  }

  void visit(const op::Add&, const Node& n) {
    const TensorId dout = of(n.outputs[0]);
    if (!dout.valid()) return;
    const TensorId a = n.inputs[0], b = n.inputs[1];
    contribute(n, a, dout);
    if (graph_[a].dims == graph_[b].dims)
      contribute(n, b, dout);
    else
      contribute(n, b, op::SumRows{}, {dout});
  }

  // The backward pass starts here: the gradient of the loss itself is 1.
  void visit(const op::TokenLoss& op, const Node& n) {
    through_softmax(n, op.scale, n.inputs.size() > 4 ? n.inputs[4] : TensorId{});
  }

  // A stored port gets its gradient back through a port; a loaded port sends its gradient back.
  void visit(const op::StorePort&, const Node& n) {
    const TensorId x = n.inputs[0], back = port_of_gradient(n.inputs[1]);
    contribute(n, x, emit(n, op::LoadPort{}, {back}, {gradient_tensor(x)})[0]);
  }
  void visit(const op::LoadPort&, const Node& n) {
    if (!of(n.outputs[0]).valid()) return;
    const TensorId back = port_of_gradient(n.inputs[0]);
    Tensor stored = graph_[back];
    stored.name += ".stored";
    stored.updates = back;
    emit(n, op::StorePort{}, {of(n.outputs[0]), back}, {std::move(stored)});
  }

  void visit(const op::PolicyLoss& op, const Node& n) {
    const TensorId logp = n.inputs[0];
    contribute(n, logp, emit(n, op::PolicyGrad{op.clip, op.kl}, n.inputs, {gradient_tensor(logp)})[0]);
  }

  // The derivative d logp / d logit is (1 at the target) - softmax.
  void visit(const op::TokenLogProbs&, const Node& n) {
    if (of(n.outputs[0]).valid()) through_softmax(n, -1, of(n.outputs[0]));
  }

  TensorId port_of_gradient(TensorId port) {
    Tensor gradients = graph_[port];
    gradients.name += ".grad";
    return graph_.add_tensor(std::move(gradients));
  }

  // Sets the gradient of the logits, from a node `n` that uses the softmax's sum, its maximum and the
  // target's logit. `weights`: one for each row; invalid: all are 1.
  void through_softmax(const Node& n, double scale, TensorId weights) {
    const auto stats = std::ranges::find_if(graph_.nodes, [&](const Node& s) {
      return std::holds_alternative<op::SoftmaxStats>(s.op) && s.outputs[1] == n.inputs[1];
    });
    HR_CHECK(stats != graph_.nodes.end(), "a loss without its softmax");
    const double by_temperature = std::get<op::SoftmaxStats>(stats->op).scale;
    const TensorId logits = stats->inputs[0], e = stats->outputs[0], own_max = stats->outputs[1];
    std::vector<TensorId> inputs{e, own_max, n.inputs[1], n.inputs[0], n.inputs[3]};
    if (weights.valid()) inputs.push_back(weights);
    gradient_[logits.value] =
        emit(n, op::CrossEntropyGrad{scale * by_temperature}, inputs, {gradient_tensor(logits)})[0];
  }

  // No gradient flows through data, statistics, initial values and updates. The gradients of sums of a norm
  // and of a softmax are part of those of Norm and of the loss. Generation is never differentiated.
  void visit(
      const AnyOf<op::LoadBatch, op::LoadRequests, op::LoadSamples, op::LoadVectors, op::CachedAttention,
                  op::MergeParts, op::Positions, op::RowSums, op::RowSquares, op::RopeTable, op::SoftmaxStats,
                  op::RescaleSums, op::Elements, op::SumSquares, op::AddScalars, op::ClipFactor, op::AdamW,
                  op::InitNormal, op::InitFill, op::SelectRow, op::Sample, op::Balance> auto&,
      const Node&) {}
  // These operators do not occur in a forward pass before the shard pass.
  void visit(const AnyOf<op::EmbeddingGrad, op::NormDots, op::NormGrad, op::JoinGrad, op::AttentionGrad,
                         op::GeluGrad, op::SwiGluGrad, op::SumRows, op::CrossEntropyGrad, op::PolicyGrad,
                         op::AllReduce, op::ReduceScatter, op::AllGather, op::AllToAll, op::Shift,
                         op::AttentionStep, op::AttentionStepGrad, op::Slice, op::Accumulate, op::RouteGrad,
                         op::CombineGrad, op::ExchangeCounts, op::SumCounts, op::ExchangeRows, op::Regroup,
                         op::Send, op::Recv, op::Cast> auto&,
             const Node&) {}

  Graph& graph_;
  std::map<std::int32_t, TensorId> gradient_;  // the sum of contributions so far, by tensor
  std::map<std::int32_t, int> versions_;       // the number of gradient tensors so far, by tensor
  std::map<std::string, int> emitted_;         // the number of backward nodes so far, by forward node
};

}  // namespace

namespace {

// True for weights that are matrices in a checkpoint. Norms and biases are vectors there, whatever dimensions
// they have in the graph.
bool is_matrix(const Tensor& w) { return (w.saved.shape.empty() ? w.dims.size() : w.saved.shape.size()) > 1; }

}  // namespace

std::vector<WeightGradient> differentiate(Graph& graph) { return Backward(graph).run(); }

void add_optimizer(Graph& graph, const std::vector<WeightGradient>& gradients, const TrainingSpec& training) {
  std::vector<TensorId> all;
  all.reserve(gradients.size());
  for (const auto& [weight, gradient] : gradients) all.push_back(gradient);
  const TensorId squares = graph.add_node(
      {"grad_norm.squares", op::SumSquares{}, all, {}, {}, Phase::kUpdate}, {Tensor{"grad_norm.squares"}})[0];
  const auto clip = graph.add_node(
      {"grad_norm.clip", op::ClipFactor{training.clip_norm}, {squares}, {}, {}, Phase::kUpdate},
      {Tensor{"clip_factor"}, Tensor{"grad_norm"}});
  graph.outputs.emplace_back("grad_norm", clip[1]);
  for (const auto& [weight, gradient] : gradients) {
    const Tensor w = graph[weight];
    std::vector<TensorId> inputs{weight, gradient};
    std::vector<Tensor> outs{Tensor{w.name + ".next", w.dtype, w.dims, TensorClass::kWeight, weight}};
    for (const char* moment : {"adam_m", "adam_v"}) {
      const std::string suffix = std::string(".") + moment;
      SavedAs saved = w.saved;
      saved.name += suffix;
      const TensorId state = graph.add_node(
          {w.name + suffix + ".init", op::InitFill{0}, {}, {}, {}, Phase::kInit},
          {Tensor{w.name + suffix, DType::kF32, w.dims, TensorClass::kOptimizer, {}, saved}})[0];
      inputs.push_back(state);
      outs.push_back(Tensor{w.name + suffix + ".next", DType::kF32, w.dims, TensorClass::kOptimizer, state});
    }
    if (training.clip_norm > 0) inputs.push_back(clip[0]);
    const double decay = is_matrix(w) ? training.weight_decay : 0;
    graph.add_node({w.name + ".adamw",
                    op::AdamW{training.beta1, training.beta2, training.eps, decay},
                    inputs,
                    {},
                    {},
                    Phase::kUpdate},
                   outs);
  }
}

}  // namespace hyperrun

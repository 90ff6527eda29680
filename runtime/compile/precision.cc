#include "runtime/compile/precision.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>
#include <vector>

namespace hyperrun {
namespace {

bool in_pass(const Node& n) { return n.phase == Phase::kForward || n.phase == Phase::kBackward; }

using Places = std::vector<std::size_t>;

// The outputs of each operator that are float32 whatever the precision.
struct {
  Places operator()(const op::RowSums&) const { return {0}; }
  Places operator()(const op::RowSquares&) const { return {0}; }
  Places operator()(const op::NormDots& op) const { return op.centered ? Places{0, 1} : Places{0}; }
  Places operator()(const op::SumRows&) const { return {0}; }
  Places operator()(const op::EmbeddingGrad&) const { return {0}; }
  Places operator()(const op::Attention&) const { return {1}; }
  Places operator()(const op::RopeTable&) const { return {0}; }
  Places operator()(const op::Route&) const { return {0, 2}; }
  Places operator()(const op::RouteGrad&) const { return {0}; }
  Places operator()(const op::CombineGrad&) const { return {1}; }
  Places operator()(const op::SoftmaxStats&) const { return {1, 2, 3}; }
  Places operator()(const op::RescaleSums&) const { return {0}; }
  Places operator()(const op::TokenLoss&) const { return {0}; }
  Places operator()(const op::TokenLogProbs&) const { return {0}; }
  Places operator()(const op::PolicyGrad&) const { return {0}; }
  Places operator()(const op::Sample&) const { return {1}; }
  Places operator()(const auto&) const { return {}; }
} constexpr kFloatOutputs;

// The inputs of each operator that are float32 whatever the precision.
struct {
  Places operator()(const op::Route&) const { return {0}; }
  Places operator()(const op::Sample&) const { return {0}; }
  Places operator()(const op::MergeParts&) const { return {0, 1}; }
  Places operator()(const auto&) const { return {}; }
} constexpr kFloatInputs;
static_assert(std::variant_size_v<GraphOpKinds> == 67, "which operands of the new operator must be float32?");

class Bfloat16Pass {
 public:
  explicit Bfloat16Pass(Graph& graph) : graph_(graph) {}

  void run() {
    narrow_activations();
    copy_weights();
    verify(graph_);
  }

  void run_without_masters() {
    narrow_activations();
    for (const Node& n : graph_.nodes)
      if (in_pass(n) && !std::holds_alternative<op::Route>(n.op))
        for (const TensorId t : n.inputs)
          if (graph_[t].cls == TensorClass::kWeight) graph_[t].dtype = DType::kBF16;
    verify(graph_);
  }

 private:
  void keep_floats() {
    for (const Node& n : graph_.nodes) {
      for (const std::size_t o : std::visit(kFloatOutputs, n.op)) floats_.insert(n.outputs[o]);
      for (const std::size_t i : std::visit(kFloatInputs, n.op)) floats_.insert(n.inputs[i]);
    }
  }

  void narrow_activations() {
    keep_floats();
    for (const Node& n : graph_.nodes)
      if (in_pass(n))
        for (const TensorId t : n.outputs) narrow(t);
    for (Tensor& t : graph_.tensors)
      if (t.cls == TensorClass::kCache || t.cls == TensorClass::kPort) t.dtype = DType::kBF16;
  }

  void narrow(TensorId t) {
    Tensor& tensor = graph_[t];
    const bool passes = tensor.cls == TensorClass::kActivation && tensor.dtype == DType::kF32;
    if (passes && !floats_.contains(t)) tensor.dtype = DType::kBF16;
  }

  // Inserts each bfloat16 copy just before its first use.
  void copy_weights() {
    for (Node& node : std::exchange(graph_.nodes, {})) {
      if (in_pass(node) && !std::holds_alternative<op::Route>(node.op))
        for (TensorId& t : node.inputs)
          if (graph_[t].cls == TensorClass::kWeight) t = copy_of(t, node.layer);
      graph_.nodes.push_back(std::move(node));
    }
  }

  TensorId copy_of(TensorId weight, int layer) {
    const auto [known, fresh] = copies_.try_emplace(weight);
    if (!fresh) return known->second;
    const Tensor w = graph_[weight];
    const Node cast{w.name + ".cast", op::Cast{}, {weight}, {}, {}, Phase::kBegin, layer};
    return known->second =
               graph_.add_node(cast, {Tensor{w.name + ".bf16", DType::kBF16, w.dims, TensorClass::kCopy}})[0];
  }

  Graph& graph_;
  std::set<TensorId> floats_;
  std::map<TensorId, TensorId> copies_;  // of weights
};

}  // namespace

void to_bfloat16(Graph& graph) { Bfloat16Pass(graph).run(); }

void weights_to_bfloat16(Graph& graph) { Bfloat16Pass(graph).run_without_masters(); }

}  // namespace hyperrun

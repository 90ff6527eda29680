// The gradient rule of each operator, as differentiate() builds it, against finite differences in double.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "runtime/compile/differentiate.h"
#include "runtime/model/graph/model.h"
#include "tests/support/interpreter.h"

namespace hyperrun::testing {
namespace {

// A graph whose leaves are weights, so that the gradient of every input of an operator is asked for.
class Small {
 public:
  Graph graph;
  DimId batch = graph.add_dim("batch", 2), seq = graph.add_dim("seq", 4), hidden = graph.add_dim("hidden", 6),
        kv_heads = graph.add_dim("kv_heads", 2), group = graph.add_dim("group", 2),
        head_dim = graph.add_dim("head_dim", 4), ffn = graph.add_dim("ffn", 5),
        vocab = graph.add_dim("vocab", 7);
  TensorId ids, targets;

  Small() {
    const Tensor tokens{"ids", DType::kI32, {batch, seq}, TensorClass::kData};
    Tensor after = tokens;
    after.name = "targets";
    const auto loaded =
        graph.add_node({"batch", op::LoadBatch{}, {}, {}, {}, Phase::kForward}, {tokens, after});
    ids = loaded[0];
    targets = loaded[1];
  }

  TensorId weight(const std::string& name, std::vector<DimId> dims) {
    return graph.add_node({name + ".init", op::InitNormal{1}, {}, {}, {}, Phase::kInit},
                          {Tensor{name, DType::kF32, std::move(dims), TensorClass::kWeight}})[0];
  }

  std::vector<TensorId> node(GraphOp op, std::vector<TensorId> inputs, std::vector<std::vector<DimId>> outs) {
    const std::string name = std::string(hyperrun::name(op)) + std::to_string(graph.nodes.size());
    std::vector<Tensor> tensors;
    for (auto& dims : outs)
      tensors.push_back({name + "." + std::to_string(tensors.size()), DType::kF32, std::move(dims)});
    return graph.add_node({name, std::move(op), std::move(inputs), {}, {}, Phase::kForward},
                          std::move(tensors));
  }

  // logits = x * head, then the cross entropy. `head` has the vocabulary first, then what x ends with.
  void loss(TensorId x, TensorId head) {
    const TensorId logits = node(op::Matmul{}, {x, head}, {{batch, seq, vocab}})[0];
    const std::vector<DimId> rows{batch, seq};
    const auto stats = node(op::SoftmaxStats{}, {logits, targets}, {{batch, seq, vocab}, rows, rows, rows});
    const TensorId sum = node(op::RescaleSums{}, {stats[2], stats[1], stats[1]}, {rows})[0];
    const TensorId total = node(op::TokenLoss{0.125}, {sum, stats[1], stats[3], targets}, {{}})[0];
    graph.outputs.emplace_back("loss", total);
  }
  void loss(TensorId x) {
    std::vector<DimId> dims{vocab};
    const std::vector<DimId>& of_x = graph[x].dims;
    dims.insert(dims.end(), of_x.begin() + 2, of_x.end());
    loss(x, weight("head", dims));
  }

  TensorId norm(TensorId x, TensorId w) {
    std::vector<DimId> rows = graph[x].dims;
    rows.pop_back();
    const TensorId squares = node(op::RowSquares{}, {x}, {rows})[0];
    return node(op::Norm{1e-2}, {x, w, squares}, {graph[x].dims})[0];
  }
  TensorId centered_norm(TensorId x, TensorId w, TensorId bias) {
    std::vector<DimId> rows = graph[x].dims;
    rows.pop_back();
    const TensorId sums = node(op::RowSums{}, {x}, {rows})[0];
    const TensorId squares = node(op::RowSquares{true}, {x, sums}, {rows})[0];
    return node(op::Norm{1e-2, true}, {x, w, squares, sums, bias}, {graph[x].dims})[0];
  }
};

class Gradients {
 public:
  // Gradients of the sum of `losses`; empty: of the reported loss.
  explicit Gradients(Graph& graph, std::vector<TensorId> losses = {})
      : graph_(graph), run_(graph), losses_(std::move(losses)) {
    if (losses_.empty()) losses_ = {graph.outputs[0].second};
  }

  // Compares `samples` elements of the gradient of every weight (0: all).
  void check(std::size_t expected_weights, std::size_t samples = 0) {
    const auto gradients = differentiate(graph_);
    verify(graph_);
    ASSERT_EQ(gradients.size(), expected_weights);
    fill();
    run_.run(Phase::kInit);
    run_.run(Phase::kForward);
    run_.run(Phase::kBackward);
    for (const auto& [weight, gradient] : gradients) {
      const Values analytic = run_[gradient];
      ASSERT_EQ(analytic.size(), run_[weight].size()) << graph_[weight].name;
      double largest = 0;
      for (double g : analytic) largest = std::max(largest, std::abs(g));
      EXPECT_GT(largest, 0) << graph_[weight].name;
      const std::size_t stride = samples == 0 ? 1 : std::max<std::size_t>(1, analytic.size() / samples);
      for (std::size_t i = 0; i < analytic.size(); i += stride)
        EXPECT_NEAR(analytic[i], difference(weight, i), 1e-7 * (1 + largest))
            << graph_[weight].name << " " << i;
    }
  }

 private:
  void fill() {
    std::mt19937 random(5);
    std::normal_distribution<double> normal;
    for (std::size_t t = 0; t < graph_.tensors.size(); ++t) {
      const TensorId id(static_cast<std::int64_t>(t));
      if (graph_[id].cls != TensorClass::kWeight) continue;
      run_[id].clear();
      for (std::int64_t i = 0; i < graph_.elements(id); ++i) run_[id].push_back(normal(random));
    }
    const auto vocab =
        std::find_if(graph_.dims.begin(), graph_.dims.end(), [](const Dim& d) { return d.name == "vocab"; });
    const auto load = std::find_if(graph_.nodes.begin(), graph_.nodes.end(),
                                   [](const Node& n) { return n.name == "batch"; });
    for (std::size_t o = 0; o < load->outputs.size(); ++o)
      for (std::int64_t i = 0; i < graph_.elements(load->outputs[o]); ++i) {
        const std::int64_t token = o == 0 ? i * i : 5 * i + 2 * static_cast<std::int64_t>(o);  // some twice
        const double value = o > 0 && i == 3 ? -1 : static_cast<double>(token % vocab->size);
        const bool is_token = graph_[load->outputs[o]].dtype == DType::kI32;
        run_[load->outputs[o]].push_back(is_token ? value : normal(random));
      }
  }

  // The slope by a central difference. Its error is h^2 times the third derivative, plus 1e-16 / h.
  double difference(TensorId weight, std::size_t i) {
    constexpr double kStep = 1e-5;
    double& w = run_[weight][i];
    const double before = w;
    w = before + kStep;
    const double up = evaluate();
    w = before - kStep;
    const double down = evaluate();
    w = before;
    return (up - down) / (2 * kStep);
  }
  double evaluate() {
    run_.run(Phase::kForward);
    double sum = 0;
    for (const TensorId loss : losses_) sum += run_[loss][0];
    return sum;
  }

  Graph& graph_;
  Interpreter run_;
  std::vector<TensorId> losses_;
};

TEST(Gradient, Matmul) {
  Small s;
  const TensorId x = s.weight("x", {s.batch, s.seq, s.hidden}), w = s.weight("w", {s.ffn, s.hidden});
  s.loss(s.node(op::Matmul{}, {x, w}, {{s.batch, s.seq, s.ffn}})[0]);
  Gradients(s.graph).check(3);
}

TEST(Gradient, MatmulOfHeads) {  // into heads and out of them, as wq and wo
  Small s;
  const TensorId x = s.weight("x", {s.batch, s.seq, s.hidden});
  const TensorId wq = s.weight("wq", {s.kv_heads, s.group, s.head_dim, s.hidden});
  const TensorId wo = s.weight("wo", {s.hidden, s.kv_heads, s.group, s.head_dim});
  const TensorId q = s.node(op::Matmul{}, {x, wq}, {{s.batch, s.seq, s.kv_heads, s.group, s.head_dim}})[0];
  s.loss(s.node(op::Matmul{}, {q, wo}, {{s.batch, s.seq, s.hidden}})[0]);
  Gradients(s.graph).check(4);
}

TEST(Gradient, Embedding) {
  Small s;
  const TensorId table = s.weight("table", {s.vocab, s.hidden});
  s.loss(s.node(op::Embedding{}, {s.ids, table}, {{s.batch, s.seq, s.hidden}})[0]);
  Gradients(s.graph).check(2);
}

TEST(Gradient, EmbeddingThatIsAlsoTheHead) {
  Small s;
  const TensorId table = s.weight("table", {s.vocab, s.hidden});
  s.loss(s.node(op::Embedding{}, {s.ids, table}, {{s.batch, s.seq, s.hidden}})[0], table);
  Gradients(s.graph).check(1);
}

TEST(Gradient, RmsNorm) {
  Small s;
  const TensorId x = s.weight("x", {s.batch, s.seq, s.hidden}), w = s.weight("w", {s.hidden});
  s.loss(s.norm(x, w));
  Gradients(s.graph).check(3);
}

TEST(Gradient, RmsNormBesideAResidual) {  // its gradient is added to the residual's in one node
  Small s;
  const std::vector<DimId> stream{s.batch, s.seq, s.hidden};
  const TensorId x = s.weight("x", stream), w = s.weight("w", {s.hidden});
  const TensorId y = s.norm(x, w);
  s.loss(s.node(op::Add{}, {x, y}, {stream})[0]);
  Gradients(s.graph).check(3);
}

TEST(Gradient, CenteredNorm) {
  Small s;
  const std::vector<DimId> stream{s.batch, s.seq, s.hidden};
  const TensorId x = s.weight("x", stream), w = s.weight("w", {s.hidden}), b = s.weight("b", {s.hidden});
  const TensorId y = s.centered_norm(x, w, b);
  s.loss(y);
  Gradients(s.graph).check(4);
}

TEST(Gradient, CenteredNormBesideAResidual) {
  Small s;
  const std::vector<DimId> stream{s.batch, s.seq, s.hidden};
  const TensorId x = s.weight("x", stream), w = s.weight("w", {s.hidden}), b = s.weight("b", {s.hidden});
  s.loss(s.node(op::Add{}, {x, s.centered_norm(x, w, b)}, {stream})[0]);
  Gradients(s.graph).check(4);
}

TEST(Gradient, Gelu) {
  Small s;
  const std::vector<DimId> wide{s.batch, s.seq, s.ffn};
  const TensorId x = s.weight("x", wide);
  s.loss(s.node(op::Gelu{}, {x}, {wide})[0]);
  Gradients(s.graph).check(2);
}

TEST(Gradient, AddOfWhatLacksTheFirstDimensions) {  // a bias of heads, added twice
  Small s;
  const std::vector<DimId> heads{s.batch, s.seq, s.kv_heads, s.head_dim};
  const TensorId x = s.weight("x", heads), b = s.weight("b", {s.kv_heads, s.head_dim});
  const TensorId once = s.node(op::Add{}, {x, b}, {heads})[0];
  s.loss(s.node(op::Add{}, {once, b}, {heads})[0]);
  Gradients(s.graph).check(3);
}

TEST(Gradient, Positions) {
  Small s;
  const TensorId table = s.weight("table", {s.vocab, s.hidden});
  const TensorId places = s.node(op::Positions{}, {s.ids}, {{s.batch, s.seq}})[0];
  s.loss(s.node(op::Embedding{}, {places, table}, {{s.batch, s.seq, s.hidden}})[0]);
  Gradients(s.graph).check(2);
}

TEST(Gradient, Rope) {
  Small s;
  const std::vector<DimId> heads{s.batch, s.seq, s.kv_heads, s.group, s.head_dim};
  const TensorId x = s.weight("x", heads);
  const TensorId table =
      s.graph.add_node({"rope.init", op::RopeTable{100}, {}, {}, {}, Phase::kInit},
                       {Tensor{"rope", DType::kF32, {s.seq, s.head_dim}, TensorClass::kConstant}})[0];
  s.loss(s.node(op::Rope{}, {x, table}, {heads})[0]);
  Gradients(s.graph).check(2);
}

TEST(Gradient, GroupedQueryAttention) {
  Small s;
  const std::vector<DimId> heads{s.batch, s.seq, s.kv_heads, s.group, s.head_dim};
  const std::vector<DimId> kv{s.batch, s.seq, s.kv_heads, s.head_dim};
  const TensorId q = s.weight("q", heads), k = s.weight("k", kv), v = s.weight("v", kv);
  s.loss(s.node(op::Attention{}, {q, k, v}, {heads, {s.batch, s.kv_heads, s.group, s.seq}})[0]);
  Gradients(s.graph).check(4);
}

TEST(Gradient, AttentionWithAWindow) {
  Small s;
  const std::vector<DimId> heads{s.batch, s.seq, s.kv_heads, s.group, s.head_dim};
  const std::vector<DimId> kv{s.batch, s.seq, s.kv_heads, s.head_dim};
  const TensorId q = s.weight("q", heads), k = s.weight("k", kv), v = s.weight("v", kv);
  s.loss(s.node(op::Attention{true, 2, 0.7}, {q, k, v}, {heads, {s.batch, s.kv_heads, s.group, s.seq}})[0]);
  Gradients(s.graph).check(4);
}

TEST(Gradient, AttentionWithoutAMask) {
  Small s;
  const std::vector<DimId> heads{s.batch, s.seq, s.kv_heads, s.group, s.head_dim};
  const TensorId q = s.weight("q", heads), k = s.weight("k", {s.batch, s.seq, s.kv_heads, s.head_dim}),
                 v = s.weight("v", {s.batch, s.seq, s.kv_heads, s.ffn});
  s.loss(s.node(op::Attention{false}, {q, k, v},
                {{s.batch, s.seq, s.kv_heads, s.group, s.ffn}, {s.batch, s.kv_heads, s.group, s.seq}})[0]);
  Gradients(s.graph).check(4);
}

TEST(Gradient, RopeOfNeighboursAtTheEndOfAHead) {
  Small s;
  const std::vector<DimId> heads{s.batch, s.seq, s.kv_heads, s.group, s.hidden};
  const TensorId x = s.weight("x", heads);
  const TensorId table =
      s.graph.add_node({"rope.init", op::RopeTable{100}, {}, {}, {}, Phase::kInit},
                       {Tensor{"rope", DType::kF32, {s.seq, s.head_dim}, TensorClass::kConstant}})[0];
  s.loss(s.node(op::Rope{false, true}, {x, table}, {heads})[0]);
  Gradients(s.graph).check(2);
}

TEST(Gradient, RopeOfTheFirstElementsOfAHead) {
  Small s;
  const std::vector<DimId> heads{s.batch, s.seq, s.kv_heads, s.group, s.hidden};
  const TensorId x = s.weight("x", heads);
  const TensorId table =
      s.graph.add_node({"rope.init", op::RopeTable{100}, {}, {}, {}, Phase::kInit},
                       {Tensor{"rope", DType::kF32, {s.seq, s.head_dim}, TensorClass::kConstant}})[0];
  s.loss(s.node(op::Rope{.first = true}, {x, table}, {heads})[0]);
  Gradients(s.graph).check(2);
}

TEST(Gradient, AttentionWhoseValuesHaveAWidthOfTheirOwn) {
  Small s;
  const TensorId q = s.weight("q", {s.batch, s.seq, s.kv_heads, s.group, s.head_dim}),
                 k = s.weight("k", {s.batch, s.seq, s.kv_heads, s.head_dim}),
                 v = s.weight("v", {s.batch, s.seq, s.kv_heads, s.ffn});
  s.loss(s.node(op::Attention{}, {q, k, v},
                {{s.batch, s.seq, s.kv_heads, s.group, s.ffn}, {s.batch, s.kv_heads, s.group, s.seq}})[0]);
  Gradients(s.graph).check(4);
}

TEST(Gradient, JoinOfHeadsWithWhatAllShare) {
  Small s;
  const DimId both = s.graph.add_dim("both", 9);
  const TensorId a = s.weight("a", {s.batch, s.seq, s.kv_heads, s.head_dim}),
                 b = s.weight("b", {s.batch, s.seq, s.ffn});
  s.loss(s.node(op::Join{}, {a, b}, {{s.batch, s.seq, s.kv_heads, both}})[0]);
  Gradients(s.graph).check(3);
}

TEST(Gradient, SwiGlu) {
  Small s;
  const std::vector<DimId> wide{s.batch, s.seq, s.ffn};
  const TensorId gate = s.weight("gate", wide), up = s.weight("up", wide);
  s.loss(s.node(op::SwiGlu{}, {gate, up}, {wide})[0]);
  Gradients(s.graph).check(3);
}

TEST(Gradient, AddOfOneTensorManyTimes) {
  Small s;
  const std::vector<DimId> stream{s.batch, s.seq, s.hidden};
  const TensorId x = s.weight("x", stream), y = s.weight("y", stream);
  const TensorId twice = s.node(op::Add{}, {x, x}, {stream})[0];
  const TensorId sum = s.node(op::Add{}, {twice, y}, {stream})[0];
  s.loss(s.node(op::Add{}, {sum, x}, {stream})[0]);
  Gradients(s.graph).check(3);
}

TEST(Gradient, CrossEntropy) {
  Small s;
  s.loss(s.weight("x", {s.batch, s.seq, s.hidden}));
  Gradients(s.graph).check(2);
}

ModelSpec small_model(std::int32_t layers, std::int32_t vocab, std::int32_t sequence) {
  return {.layers = layers,
          .hidden = 8,
          .heads = 4,
          .kv_heads = 2,
          .head_dim = 4,
          .ffn = 6,
          .vocab = vocab,
          .sequence = sequence,
          .rope_theta = 50};
}

TEST(Gradient, WholeModel) {
  for (const bool tied : {false, true}) {
    ModelSpec model = small_model(2, 9, 5);
    model.tied_head = tied;
    Graph graph = build_model(model, {.batch = 2, .loss_scale = 0.1});
    Gradients(graph).check(tied ? 20 : 21, 4);
  }
}

TEST(Gradient, WholeGpt2) {
  for (const bool tied : {false, true}) {
    ModelSpec model{.name = "gpt2",
                    .layers = 2,
                    .hidden = 6,
                    .heads = 2,
                    .kv_heads = 2,
                    .head_dim = 3,
                    .ffn = 7,
                    .vocab = 9,
                    .sequence = 5,
                    .tied_head = tied};
    model.positions = 8;
    Graph graph = build_model(model, {.batch = 2, .loss_scale = 0.1});
    Gradients(graph).check(tied ? 36 : 37, 4);
  }
}

TEST(Gradient, MixturesOfExperts) {
  for (const bool sigmoid : {false, true}) {
    ModelSpec model = small_model(2, 9, 5);
    model.experts = {.count = 4, .choices = 2, .ffn = 5, .shared = 1, .dense_layers = 1};
    model.experts.scoring = sigmoid ? "sigmoid" : "softmax";
    model.experts.normalize = sigmoid;
    model.experts.scale = 1.5;
    Graph graph = build_model(model, {.batch = 2, .loss_scale = 0.1});
    Gradients(graph).check(25, 4);
  }
}

// The policy has a temperature. The log probabilities of behaviour and reference are far from the model's
// own, so that some ratios are beyond the bounds, on both sides.
TEST(Gradient, PolicyOfAWholeModel) {
  ModelSpec model = small_model(1, 3, 6);
  Graph graph = build_model(
      model, {.batch = 3, .purpose = Purpose::kPolicy, .temperature = 1.5, .clip = 0.2, .kl = 0.3});
  Gradients gradients(graph, {graph.find("policy.sums")});
  gradients.check(12, 6);
}

// The loss is the sum over positions, by their weights.
TEST(Gradient, GivenTextsWithWeights) {
  ModelSpec model = small_model(1, 9, 5);
  Graph graph = build_model(model, {.batch = 2, .purpose = Purpose::kTexts});
  Gradients(graph).check(12, 4);
}

TEST(Gradient, LatentAttentionAndPredictionOfFurtherTokens) {
  for (const int q_rank : {0, 3}) {
    ModelSpec model{.name = "deepseek_v3",
                    .layers = 1,
                    .hidden = 6,
                    .heads = 2,
                    .kv_heads = 2,
                    .head_dim = 5,
                    .ffn = 4,
                    .vocab = 9,
                    .sequence = 5,
                    .rope_theta = 50};
    model.latent = {.q_rank = q_rank, .kv_rank = 4, .nope_dim = 3, .rope_dim = 2, .value_dim = 3};
    model.mtp = {.layers = 2};
    Graph graph = build_model(model, {.batch = 2, .loss_scale = 0.1});
    // The reported loss leaves out those of modules, but gradients are of the sum of all losses.
    std::vector<TensorId> losses;
    for (const char* name : {"loss", "layers.1.further.loss", "layers.2.further.loss"})
      losses.push_back(graph.find(name));
    Gradients(graph, losses).check(q_rank > 0 ? 53 : 47, 4);
  }
}

TEST(Gradient, NothingFlowsIntoWhatTheLossDoesNotUse) {
  Small s;
  s.loss(s.weight("x", {s.batch, s.seq, s.hidden}));
  const TensorId unused = s.weight("unused", {s.ffn, s.hidden});
  for (const auto& [weight, gradient] : differentiate(s.graph)) EXPECT_NE(weight, unused);
}

// Biases of heads have several dimensions here, and one in a checkpoint.
TEST(Optimizer, DecaysNoBias) {
  ModelSpec model{.name = "gpt2",
                  .layers = 1,
                  .hidden = 6,
                  .heads = 2,
                  .kv_heads = 2,
                  .head_dim = 3,
                  .ffn = 7,
                  .vocab = 9,
                  .sequence = 5};
  Graph graph = build_model(model, {});
  const auto gradients = differentiate(graph);
  add_optimizer(graph, gradients, TrainingSpec{});
  int vectors = 0;
  for (const Node& n : graph.nodes) {
    const auto* adamw = std::get_if<op::AdamW>(&n.op);
    if (adamw == nullptr) continue;
    const std::string& name = graph[n.inputs[0]].name;
    const bool vector = name.ends_with("bias") || name.ends_with("norm");
    EXPECT_EQ(adamw->weight_decay == 0, vector) << name;
    vectors += vector ? 1 : 0;
  }
  EXPECT_EQ(vectors, 12);
}

TEST(Optimizer, DecaysMatricesOnlyAndClipsByTheNormOfAll) {
  Small s;
  const TensorId x = s.weight("x", {s.batch, s.seq, s.hidden}), w = s.weight("w", {s.hidden});
  s.loss(s.norm(x, w));
  const auto gradients = differentiate(s.graph);
  TrainingSpec training;
  training.clip_norm = 0.25;
  add_optimizer(s.graph, gradients, training);
  verify(s.graph);
  int updates = 0;
  for (const Node& n : s.graph.nodes) {
    if (const auto* clip = std::get_if<op::ClipFactor>(&n.op)) {
      EXPECT_EQ(clip->max_norm, 0.25);
    }
    if (std::holds_alternative<op::SumSquares>(n.op)) {
      EXPECT_EQ(n.inputs.size(), gradients.size());
    }
    const auto* adamw = std::get_if<op::AdamW>(&n.op);
    if (adamw == nullptr) continue;
    EXPECT_EQ(adamw->weight_decay, s.graph[n.inputs[0]].dims.size() > 1 ? training.weight_decay : 0);
    for (std::size_t o = 0; o < 3; ++o)
      EXPECT_EQ(storage_of(s.graph, n.outputs[o]), n.inputs[o == 0 ? 0 : o + 1]) << "in place";
    ++updates;
  }
  EXPECT_EQ(updates, 3);
}

}  // namespace
}  // namespace hyperrun::testing

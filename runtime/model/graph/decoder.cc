#include "runtime/model/graph/decoder.h"

#include <algorithm>

namespace hyperrun {
namespace {

class Decoder {
 public:
  Decoder(const ModelSpec& model, const ModelUse& use, const DecoderTraits& traits)
      : model_(model), use_(use), traits_(traits) {
    batch_ = graph_.add_dim("batch", use.batch);
    seq_ = graph_.add_dim("seq", model.sequence);
    hidden_ = graph_.add_dim("hidden", model.hidden);
    kv_heads_ = graph_.add_dim("kv_heads", model.kv_heads);
    group_ = graph_.add_dim("group", model.heads / model.kv_heads);
    head_dim_ = graph_.add_dim("head_dim", model.head_dim);
    ffn_ = graph_.add_dim("ffn", model.ffn);
    vocab_ = graph_.add_dim("vocab", model.vocab);
    const ExpertsSpec& experts = model.experts;
    if (experts.count == 0) return;
    experts_ = graph_.add_dim("experts", experts.count);
    choices_ = graph_.add_dim("choices", experts.choices);
    expert_ffn_ = graph_.add_dim("expert_ffn", experts.ffn);
    shared_ffn_ = graph_.add_dim("shared_ffn", std::int64_t{experts.ffn} * experts.shared);
  }

  Graph build() {
    load_tokens();
    table_ = rope_table();
    const TensorId embed = weight("embed", {vocab_, hidden_}, "model.embed_tokens.weight");
    const TensorId head = model_.tied_head ? embed : weight("head", {vocab_, hidden_}, "lm_head.weight");
    TensorId x =
        node("embed.lookup", op::Embedding{}, {ids_, embed}, {batch_, seq_, hidden_}, "embed.residual");
    for (int l = 0; l < model_.layers; ++l) x = layer(l, x);
    layer_ = model_.layers;
    const TensorId last = use_.generate ? select_row(x) : x;
    const TensorId normed = norm("final_norm", last, "model.norm.weight");
    if (use_.generate)
      sample(normed, head);
    else
      loss(normed, head);
    return std::move(graph_);
  }

 private:
  using Dims = std::vector<DimId>;

  TensorId node(const std::string& name, GraphOp op, std::vector<TensorId> inputs, Dims dims,
                const std::string& out) {
    return graph_.add_node({name, std::move(op), std::move(inputs), {}, {}, Phase::kForward, layer_},
                           {Tensor{out, DType::kF32, std::move(dims)}})[0];
  }

  // Saved as a matrix [out, in]; dimensions that `out_dims` counts are its rows.
  TensorId weight(const std::string& name, Dims dims, const std::string& saved_as, std::size_t out_dims = 1) {
    const bool is_norm = dims.size() == 1;
    std::vector<std::int64_t> matrix(is_norm ? 1 : 2, 1);
    for (std::size_t d = 0; d < dims.size(); ++d) matrix[d < out_dims ? 0 : 1] *= graph_[dims[d]].size;
    GraphOp init = is_norm ? GraphOp(op::InitFill{1.0}) : GraphOp(op::InitNormal{use_.init_std});
    return graph_.add_node(
        {name + ".init", std::move(init), {}, {}, {}, Phase::kInit},
        {Tensor{
            name, DType::kF32, std::move(dims), TensorClass::kWeight, {}, saved_as, std::move(matrix)}})[0];
  }

  TensorId rope_table() {
    return graph_.add_node({"rope.init", op::RopeTable{model_.rope_theta}, {}, {}, {}, Phase::kInit},
                           {Tensor{"rope", DType::kF32, {seq_, head_dim_}, TensorClass::kConstant}})[0];
  }

  void load_tokens() {
    const Tensor ids{"ids", DType::kI32, {batch_, seq_}, TensorClass::kData};
    if (use_.generate) {
      ids_ = graph_.add_node({"prompt", op::LoadPrompt{}, {}, {}, {}, Phase::kInit}, {ids})[0];
      return;
    }
    Tensor targets = ids;
    targets.name = "targets";
    const auto loaded =
        graph_.add_node({"batch", op::LoadBatch{}, {}, {}, {}, Phase::kForward}, {ids, targets});
    ids_ = loaded[0];
    targets_ = loaded[1];
  }

  // Over the last dimension.
  TensorId norm(const std::string& name, TensorId x, const std::string& saved_as) {
    const TensorId w = weight(name, {graph_[x].dims.back()}, saved_as);
    Dims rows = graph_[x].dims;
    const Dims whole = rows;
    rows.pop_back();
    const TensorId squares = node(name + ".squares", op::RowSquares{}, {x}, rows, name + ".squares");
    return node(name, op::RmsNorm{model_.norm_eps}, {x, w, squares}, whole, name + ".out");
  }

  TensorId linear(const std::string& name, TensorId x, Dims weight_dims, Dims out,
                  const std::string& saved_as) {
    // A weight has the dimensions of the output that the input lacks, and those that are summed over.
    const auto out_dims = std::count_if(weight_dims.begin(), weight_dims.end(), [&](DimId d) {
      return std::find(out.begin(), out.end(), d) != out.end();
    });
    const TensorId w = weight(name, std::move(weight_dims), saved_as, static_cast<std::size_t>(out_dims));
    return node(name + ".product", op::Matmul{}, {x, w}, std::move(out), name + ".out");
  }

  TensorId layer(int l, TensorId x) {
    const std::string at = "layers." + std::to_string(l) + ".";
    const std::string hf = "model." + at;
    layer_ = l;
    const TensorId a = attention(at + "attention.", hf + "self_attn.",
                                 norm(at + "attention.norm", x, hf + "input_layernorm.weight"));
    const Dims stream{batch_, seq_, hidden_};
    x = node(at + "attention.add", op::Add{}, {x, a}, stream, at + "attention.residual");
    const TensorId normed = norm(at + "ffn.norm", x, hf + "post_attention_layernorm.weight");
    const bool mixture = model_.experts.count > 0 && l >= model_.experts.dense_layers;
    const TensorId f =
        mixture ? experts(at + "experts.", hf + "mlp.", normed) : ffn(at + "ffn.", hf + "mlp.", normed, ffn_);
    x = node(at + "ffn.add", op::Add{}, {x, f}, stream, at + "ffn.residual");
    return x;
  }

  TensorId attention(const std::string& at, const std::string& hf, TensorId x) {
    const Dims q_dims{batch_, seq_, kv_heads_, group_, head_dim_},
        kv_dims{batch_, seq_, kv_heads_, head_dim_};
    TensorId q = linear(at + "wq", x, {kv_heads_, group_, head_dim_, hidden_}, q_dims, hf + "q_proj.weight");
    TensorId k = linear(at + "wk", x, {kv_heads_, head_dim_, hidden_}, kv_dims, hf + "k_proj.weight");
    const TensorId v = linear(at + "wv", x, {kv_heads_, head_dim_, hidden_}, kv_dims, hf + "v_proj.weight");
    if (traits_.qk_norm) {
      q = norm(at + "q_norm", q, hf + "q_norm.weight");
      k = norm(at + "k_norm", k, hf + "k_norm.weight");
    }
    const TensorId q_turned = node(at + "rope_q", op::Rope{}, {q, table_}, q_dims, at + "q");
    const TensorId k_turned = node(at + "rope_k", op::Rope{}, {k, table_}, kv_dims, at + "k");
    const TensorId o = graph_.add_node(
        {at + "core", op::Attention{}, {q_turned, k_turned, v}, {}, {}, Phase::kForward, layer_},
        {Tensor{at + "o", DType::kF32, q_dims},
         Tensor{at + "lse", DType::kF32, {batch_, kv_heads_, group_, seq_}}})[0];
    return linear(at + "wo", o, {hidden_, kv_heads_, group_, head_dim_}, {batch_, seq_, hidden_},
                  hf + "o_proj.weight");
  }

  TensorId ffn(const std::string& at, const std::string& hf, TensorId x, DimId width) {
    const Dims wide{batch_, seq_, width};
    const TensorId gate = linear(at + "gate", x, {width, hidden_}, wide, hf + "gate_proj.weight");
    const TensorId up = linear(at + "up", x, {width, hidden_}, wide, hf + "up_proj.weight");
    const TensorId h = node(at + "swiglu", op::SwiGlu{}, {gate, up}, wide, at + "h");
    return linear(at + "down", h, {hidden_, width}, {batch_, seq_, hidden_}, hf + "down_proj.weight");
  }

  // --- mixture of experts ---------------------------------------------------------------------------

  TensorId experts(const std::string& at, const std::string& hf, TensorId x) {
    const ExpertsSpec& spec = model_.experts;
    const auto [gates, ids] = route(at, hf, x);
    const std::vector<TensorId> sent =
        graph_.add_node({at + "dispatch", op::Dispatch{}, {x, ids}, {}, {}, Phase::kForward, layer_},
                        {Tensor{at + "rows", DType::kF32, {experts_, batch_, seq_, hidden_}},
                         Tensor{at + "counts", DType::kI32, {experts_, batch_, seq_}}});
    graph_[sent[1]].vectors = 1;
    graph_[sent[1]].choices = spec.choices;
    const TensorId rows = about(sent[0], sent[1]), counts = sent[1];
    const TensorId gate = each(at + "gate", rows, counts, {experts_, expert_ffn_, hidden_}, expert_ffn_,
                               hf + "experts.gate_proj.weight");
    const TensorId up = each(at + "up", rows, counts, {experts_, expert_ffn_, hidden_}, expert_ffn_,
                             hf + "experts.up_proj.weight");
    const TensorId h = about(node(at + "swiglu", op::SwiGlu{}, {gate, up, counts},
                                  {experts_, batch_, seq_, expert_ffn_}, at + "h"),
                             counts);
    const TensorId down = each(at + "down", h, counts, {experts_, hidden_, expert_ffn_}, hidden_,
                               hf + "experts.down_proj.weight");
    TensorId y = node(at + "combine", op::Combine{}, {down, ids, gates}, {batch_, seq_, hidden_}, at + "out");
    if (spec.shared == 0) return y;
    const TensorId shared = ffn(at + "shared.", hf + "shared_experts.", x, shared_ffn_);
    return node(at + "shared.add", op::Add{}, {y, shared}, {batch_, seq_, hidden_}, at + "all");
  }

  std::pair<TensorId, TensorId> route(const std::string& at, const std::string& hf, TensorId x) {
    const ExpertsSpec& spec = model_.experts;
    std::vector<TensorId> inputs{
        linear(at + "router", x, {experts_, hidden_}, {batch_, seq_, experts_}, hf + "gate.weight")};
    TensorId bias;
    if (spec.bias_rate > 0) {
      bias = graph_.add_node({at + "bias.init", op::InitFill{0}, {}, {}, {}, Phase::kInit},
                             {Tensor{at + "bias",
                                     DType::kF32,
                                     {experts_},
                                     TensorClass::kWeight,
                                     {},
                                     hf + "gate.e_score_correction_bias"}})[0];
      inputs.push_back(bias);
    }
    // Fedus et al. 2022: aux_loss x experts x sum over experts of (share of the choices) x (mean
    // probability), of the tokens of a micro-batch, which has its share of the step's loss.
    const double tokens = static_cast<double>(use_.batch) * model_.sequence;
    const double aux = spec.aux_loss * spec.count / (spec.choices * tokens) * use_.loss_scale;
    const auto routed =
        graph_.add_node({at + "route",
                         op::Route{spec.choices, spec.scoring == "sigmoid", spec.normalize, spec.scale, aux},
                         inputs,
                         {},
                         {},
                         Phase::kForward,
                         layer_},
                        {Tensor{at + "gates", DType::kF32, {batch_, seq_, choices_}},
                         Tensor{at + "ids", DType::kI32, {batch_, seq_, choices_}},
                         Tensor{at + "load", DType::kF32, {experts_}}});
    if (bias.valid() && !use_.generate) {
      const TensorId load =
          graph_.add_node({at + "load.sum", op::Accumulate{}, {routed[2]}, {}, {}, Phase::kForward, layer_},
                          {Tensor{at + "load.step", DType::kF32, {experts_}, TensorClass::kAccumulator}})[0];
      graph_.add_node({at + "balance", op::Balance{spec.bias_rate}, {bias, load}, {}, {}, Phase::kUpdate},
                      {Tensor{at + "bias.next", DType::kF32, {experts_}, TensorClass::kWeight, bias}});
    }
    return {routed[0], routed[1]};
  }

  // Of each expert its own product with its rows.
  TensorId each(const std::string& name, TensorId rows, TensorId counts, Dims weight_dims, DimId out,
                const std::string& saved_as) {
    const TensorId w = weight(name, std::move(weight_dims), saved_as, 2);
    return about(node(name + ".product", op::Matmul{}, {rows, w, counts}, {experts_, batch_, seq_, out},
                      name + ".out"),
                 counts);
  }

  TensorId about(TensorId rows, TensorId counts) {
    graph_[rows].counts = counts;
    graph_[rows].choices = model_.experts.choices;
    return rows;
  }

  void loss(TensorId x, TensorId head) {
    const Dims rows{batch_, seq_};
    const TensorId logits = node("head.product", op::Matmul{}, {x, head}, {batch_, seq_, vocab_}, "logits");
    const auto stats = graph_.add_node(
        {"loss.stats", op::SoftmaxStats{}, {logits, targets_}, {}, {}, Phase::kForward, layer_},
        {Tensor{"loss.e", DType::kF32, {batch_, seq_, vocab_}}, Tensor{"loss.max", DType::kF32, rows},
         Tensor{"loss.local_sum", DType::kF32, rows}, Tensor{"loss.target", DType::kF32, rows}});
    const TensorId sum =
        node("loss.rescale", op::RescaleSums{}, {stats[2], stats[1], stats[1]}, rows, "loss.sum");
    const TensorId total = graph_.add_node({"loss.total",
                                            op::TokenLoss{use_.loss_scale},
                                            {sum, stats[1], stats[3], targets_},
                                            {},
                                            {},
                                            Phase::kForward,
                                            layer_},
                                           {Tensor{"loss", DType::kF32, {}, TensorClass::kAccumulator}})[0];
    graph_.outputs.emplace_back("loss", total);
  }

  TensorId select_row(TensorId x) { return node("last", op::SelectRow{}, {x}, {batch_, hidden_}, "last"); }

  void sample(TensorId x, TensorId head) {
    const TensorId logits = node("head.product", op::Matmul{}, {x, head}, {batch_, vocab_}, "logits");
    const auto drawn = graph_.add_node(
        {"sample", op::Sample{use_.temperature, use_.top_k}, {logits, ids_}, {}, {}, Phase::kForward, layer_},
        {Tensor{"token", DType::kI32, {batch_}},
         Tensor{"ids.next", DType::kI32, {batch_, seq_}, TensorClass::kData, ids_}});
    graph_.outputs.emplace_back("token", drawn[0]);
  }

  const ModelSpec& model_;
  const ModelUse& use_;
  const DecoderTraits& traits_;
  Graph graph_;
  DimId batch_, seq_, hidden_, kv_heads_, group_, head_dim_, ffn_, vocab_;
  DimId experts_, choices_, expert_ffn_, shared_ffn_;
  TensorId ids_, targets_, table_;
  int layer_ = -1;  // being built; -1: before them, their number: behind them
};

}  // namespace

Graph build_decoder(const ModelSpec& model, const ModelUse& use, const DecoderTraits& traits) {
  return Decoder(model, use, traits).build();
}

}  // namespace hyperrun

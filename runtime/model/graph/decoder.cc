#include "runtime/model/graph/decoder.h"

#include <optional>

#include "runtime/model/graph/attention.h"
#include "runtime/model/graph/builder.h"
#include "runtime/model/graph/experts.h"

namespace hyperrun {
namespace {

class Decoder {
 public:
  Decoder(const ModelSpec& model, const ModelUse& use, const DecoderTraits& traits)
      : b_(model, use, traits) {}

  Graph build() {
    const ModelSpec& model = b_.model;
    experts_.emplace(b_);
    load_tokens();
    attention_.emplace(b_);
    embed_ = b_.weight("embed", {b_.vocab, b_.hidden}, {"model.embed_tokens.weight"});
    head_ = model.tied_head ? embed_ : b_.weight("head", {b_.vocab, b_.hidden}, {"lm_head.weight"});
    TensorId x = b_.node("embed.lookup", op::Embedding{}, {ids_, embed_}, b_.stream(), "embed.residual");
    for (int l = 0; l < model.layers; ++l) {
      b_.layer = l;
      x = layer(l, x);
    }
    b_.layer = model.layers;
    const TensorId last = b_.use.generate ? select_row(x) : x;
    const TensorId normed = b_.norm("final_norm", last, "model.norm.weight");
    if (b_.use.generate) {
      sample(normed);
    } else {
      b_.graph.outputs.emplace_back("loss", loss("", normed, targets_[0], 1));
      for (int k = 1; k <= model.mtp.layers; ++k) x = predict_further(k, x);
    }
    return std::move(b_.graph);
  }

 private:
  void load_tokens() {
    const Tensor ids{"ids", DType::kI32, {b_.batch, b_.seq}, TensorClass::kData};
    if (b_.use.generate) {
      ids_ = b_.graph.add_node({"prompt", op::LoadPrompt{}, {}, {}, {}, Phase::kInit}, {ids})[0];
      return;
    }
    std::vector<Tensor> loaded{ids};
    for (int further = 0; further <= b_.model.mtp.layers; ++further) {
      loaded.push_back(ids);
      loaded.back().name = further == 0 ? "targets" : "targets." + std::to_string(further);
    }
    targets_ = b_.nodes("batch", op::LoadBatch{}, {}, std::move(loaded));
    ids_ = targets_.front();
    targets_.erase(targets_.begin());
  }

  static std::string of_layer(int l) { return "layers." + std::to_string(l) + "."; }

  TensorId layer(int l, TensorId x) {
    const std::string at = of_layer(l), hf = "model." + at;
    const TensorId a = (*attention_)(at + "attention.", hf + "self_attn.",
                                     b_.norm(at + "attention.norm", x, hf + "input_layernorm.weight"));
    x = b_.node(at + "attention.add", op::Add{}, {x, a}, b_.stream(), at + "attention.residual");
    const TensorId normed = b_.norm(at + "ffn.norm", x, hf + "post_attention_layernorm.weight");
    const bool mixture = b_.model.experts.count > 0 && l >= b_.model.experts.dense_layers;
    const TensorId f = mixture ? (*experts_)(at + "experts.", hf + std::string(b_.traits.experts_in), normed)
                               : b_.ffn(at + "ffn.", hf + "mlp.", normed, b_.ffn_width);
    return b_.node(at + "ffn.add", op::Add{}, {x, f}, b_.stream(), at + "ffn.residual");
  }

  // DeepSeek-AI 2024 (DeepSeek-V3), 2.2. What module k gets of a token is the state of the module before, or
  // of the layers, and the embedding of the token k further on: the target of the module before.
  TensorId predict_further(int k, TensorId x) {
    const int l = b_.model.layers + k - 1;
    const std::string at = of_layer(l), hf = "model." + at;
    if (!pair_.valid()) pair_ = b_.graph.add_dim("pair", std::int64_t{2} * b_.model.hidden);
    const auto before = static_cast<std::size_t>(k - 1);
    const TensorId token = b_.node(at + "further.lookup", op::Embedding{}, {targets_[before], embed_},
                                   b_.stream(), at + "further.residual");
    const TensorId both = b_.node(at + "further.join", op::Join{},
                                  {b_.norm(at + "further.token.norm", token, hf + "enorm.weight"),
                                   b_.norm(at + "further.state.norm", x, hf + "hnorm.weight")},
                                  {b_.batch, b_.seq, pair_}, at + "further.both");
    x = layer(
        l, b_.linear(at + "further.project", both, {b_.hidden, pair_}, b_.stream(), {hf + "eh_proj.weight"}));
    const TensorId normed = b_.norm(at + "further.norm", x, hf + "shared_head.norm.weight");
    loss(at + "further.", normed, targets_[before + 1], b_.model.mtp.loss_factor / b_.model.mtp.layers);
    return x;
  }

  TensorId loss(const std::string& at, TensorId x, TensorId targets, double factor) {
    const Dims rows{b_.batch, b_.seq}, wide{b_.batch, b_.seq, b_.vocab};
    const TensorId logits = b_.node(at + "head.product", op::Matmul{}, {x, head_}, wide, at + "logits");
    const auto stats = b_.nodes(
        at + "loss.stats", op::SoftmaxStats{}, {logits, targets},
        {Tensor{at + "loss.e", DType::kF32, wide}, Tensor{at + "loss.max", DType::kF32, rows},
         Tensor{at + "loss.local_sum", DType::kF32, rows}, Tensor{at + "loss.target", DType::kF32, rows}});
    const TensorId sum = b_.node(at + "loss.rescale", op::RescaleSums{}, {stats[2], stats[1], stats[1]}, rows,
                                 at + "loss.sum");
    return b_.nodes(at + "loss.total", op::TokenLoss{b_.use.loss_scale * factor},
                    {sum, stats[1], stats[3], targets},
                    {Tensor{at + "loss", DType::kF32, {}, TensorClass::kAccumulator}})[0];
  }

  TensorId select_row(TensorId x) {
    return b_.node("last", op::SelectRow{}, {x}, {b_.batch, b_.hidden}, "last");
  }

  void sample(TensorId x) {
    const TensorId logits = b_.node("head.product", op::Matmul{}, {x, head_}, {b_.batch, b_.vocab}, "logits");
    const auto drawn =
        b_.nodes("sample", op::Sample{b_.use.temperature, b_.use.top_k}, {logits, ids_},
                 {Tensor{"token", DType::kI32, {b_.batch}},
                  Tensor{"ids.next", DType::kI32, {b_.batch, b_.seq}, TensorClass::kData, ids_}});
    b_.graph.outputs.emplace_back("token", drawn[0]);
  }

  Builder b_;
  std::optional<AttentionBlock> attention_;
  std::optional<ExpertsBlock> experts_;
  TensorId ids_, embed_, head_;
  std::vector<TensorId> targets_;  // of the model, and of each module that predicts further
  DimId pair_;                     // a state and an embedding
};

}  // namespace

Graph build_decoder(const ModelSpec& model, const ModelUse& use, const DecoderTraits& traits) {
  return Decoder(model, use, traits).build();
}

}  // namespace hyperrun

#include "runtime/model/graph/decoder.h"

#include <fmt/core.h>

#include <optional>

#include "runtime/model/graph/attention.h"
#include "runtime/model/graph/builder.h"
#include "runtime/model/graph/experts.h"
#include "runtime/model/graph/token_io.h"

namespace hyperrun {
namespace {

class Decoder {
 public:
  Decoder(const ModelSpec& model, const ModelUse& use, const ModelFamily& family) : b_(model, use, family) {}

  Graph build() {
    const ModelSpec& model = b_.model;
    experts_.emplace(b_);
    attention_.emplace(b_);
    io_.emplace(b_, "model.embed_tokens.weight");
    if (b_.use.generates()) attention_->set_positions(io_->positions());
    TensorId x =
        b_.begins() ? io_->embedded("embed.residual") : b_.load_port("in", b_.stream(), "port.in.residual");
    for (int l = b_.use.first_layer; l < b_.end_layer(); ++l) {
      b_.layer = l;
      x = layer(l, x);
    }
    if (!b_.ends()) {
      b_.store_port("out", x);
      return std::move(b_.graph);
    }
    b_.layer = model.layers;
    io_->end(b_.norm("final_norm", io_->last(x), "model.norm.weight"));
    for (int k = 1; k <= model.mtp.layers && b_.use.purpose == Purpose::kTrain; ++k)
      x = predict_further(k, x);
    return std::move(b_.graph);
  }

 private:
  static std::string of_layer(int l) { return fmt::format("layers.{}.", l); }

  TensorId layer(int l, TensorId x) {
    const std::string at = of_layer(l), hf = "model." + at;
    x = (*attention_)(at + "attention.", hf + "self_attn.",
                      b_.norm(at + "attention.norm", x, hf + "input_layernorm.weight"), x);
    const TensorId normed = b_.norm(at + "ffn.norm", x, hf + "post_attention_layernorm.weight");
    if (!b_.model.experts.in_layer(l))
      return b_.onto(x, at + "ffn.", swiglu(at, hf, normed), down_bias(at, hf));
    const TensorId f = (*experts_)(at + "experts.", hf + std::string(b_.family.experts_in), normed);
    return b_.onto(x, at + "ffn.", f, {});
  }

  TensorId swiglu(const std::string& at, const std::string& hf, TensorId x) {
    return b_.ffn(at + "ffn.", hf + "mlp.", x, b_.ffn_width, b_.model.mlp_bias);
  }
  Builder::Bias down_bias(const std::string& at, const std::string& hf) const {
    if (!b_.model.mlp_bias) return {};
    return {at + "ffn.down", {hf + "mlp.down_proj.bias"}};
  }

  // Multi-token prediction (DeepSeek-AI 2024, DeepSeek-V3, 2.2). The input of module k for a token is the
  // state of the module before, or of the layers, and the embedding of the token k positions later, which is
  // the target of the module before.
  TensorId predict_further(int k, TensorId x) {
    const int l = b_.model.layers + k - 1;
    const std::string at = of_layer(l), hf = "model." + at;
    if (!pair_.valid()) pair_ = b_.graph.add_dim("pair", std::int64_t{2} * b_.model.hidden);
    const TensorId token = b_.node(at + "further.lookup", op::Embedding{},
                                   {io_->targets(k - 1), io_->embed()}, b_.stream(), at + "further.residual");
    const TensorId both = b_.node(at + "further.join", op::Join{},
                                  {b_.norm(at + "further.token.norm", token, hf + "enorm.weight"),
                                   b_.norm(at + "further.state.norm", x, hf + "hnorm.weight")},
                                  {b_.batch, b_.seq, pair_}, at + "further.both");
    x = layer(
        l, b_.linear(at + "further.project", both, {b_.hidden, pair_}, b_.stream(), {hf + "eh_proj.weight"}));
    const TensorId normed = b_.norm(at + "further.norm", x, hf + "shared_head.norm.weight");
    io_->loss(at + "further.", normed, io_->targets(k), b_.model.mtp.loss_factor / b_.model.mtp.layers);
    return x;
  }

  Builder b_;
  std::optional<AttentionBlock> attention_;
  std::optional<ExpertsBlock> experts_;
  std::optional<TokenIo> io_;
  DimId pair_;  // a state and an embedding
};

}  // namespace

Graph build_decoder(const ModelSpec& model, const ModelUse& use, const ModelFamily& family) {
  return Decoder(model, use, family).build();
}

}  // namespace hyperrun

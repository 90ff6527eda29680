#include "runtime/model/graph/encoder.h"

#include <fmt/core.h>

#include <string>

#include "runtime/base/error.h"
#include "runtime/model/graph/builder.h"
#include "runtime/model/graph/gpt_block.h"

namespace hyperrun {
namespace {

GptNames names_of_layer(const ModelSpec& m, int layer) {
  const std::string hf = fmt::format("vit.encoder.layer.{}.", layer);
  const std::int64_t hidden = m.hidden, heads = std::int64_t{m.heads} * m.head_dim;
  const auto product = [](const std::string& name, std::int64_t out, std::int64_t in) {
    return GptNames::Product{{name + ".weight", {out, in}}, {name + ".bias", {out}}};
  };
  return {.attention_norm = hf + "layernorm_before",
          .ffn_norm = hf + "layernorm_after",
          .q = product(hf + "attention.attention.query", heads, hidden),
          .k = product(hf + "attention.attention.key", heads, hidden),
          .v = product(hf + "attention.attention.value", heads, hidden),
          .out = product(hf + "attention.output.dense", hidden, heads),
          .up = product(hf + "intermediate.dense", m.ffn, hidden),
          .down = product(hf + "output.dense", hidden, m.ffn)};
}

}  // namespace

Graph build_encoder(const ModelSpec& model, const ModelUse& use) {
  HR_CHECK(use.slots > 0 && model.kv_heads == model.heads, "an encoder is a sub-model");
  Builder b(model, use, family_of(model));
  b.causal = false;
  const GptBlock block(b, GptBlock::Matrices::kOutIn);
  const DimId input = b.graph.add_dim("input", model.inputs),
              features = b.graph.add_dim("features", model.features);
  const TensorId vectors =
      b.nodes("batch", op::LoadVectors{}, {},
              {Tensor{"inputs", DType::kF32, {b.batch, b.seq, input}, TensorClass::kData}})[0];
  const std::string patches = "vit.embeddings.patch_embeddings.projection";
  TensorId x = b.linear("patches", vectors, {b.hidden, input}, b.stream(), {patches + ".weight"});
  x = block.biased("patches", x, {b.hidden}, {patches + ".bias"}, "patches.biased");
  const TensorId positions =
      b.weight("positions", {b.seq, b.hidden},
               {"vit.embeddings.position_embeddings", {1, model.sequence, model.hidden}},
               op::InitNormal{use.init_std});
  x = b.node("positions.add", op::Add{}, {x, positions}, b.stream(), "embed.residual");
  for (int l = 0; l < model.layers; ++l) {
    b.layer = l;
    x = block.layer(l, x, names_of_layer(model, l));
  }
  b.layer = model.layers;
  x = block.norm("final_norm", x, "vit.layernorm");
  b.store_port(
      "out", b.linear("features", x, {features, b.hidden}, {b.batch, b.seq, features}, {"features.weight"}));
  return std::move(b.graph);
}

}  // namespace hyperrun

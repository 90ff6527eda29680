#include "runtime/model/graph/gpt.h"

#include <fmt/core.h>

#include <algorithm>
#include <string>

#include "runtime/model/graph/builder.h"
#include "runtime/model/graph/gpt_block.h"
#include "runtime/model/graph/token_io.h"

namespace hyperrun {
namespace {

// The names of a layer's weights. Queries, keys and values are thirds of one matrix.
GptNames names_of_layer(const ModelSpec& m, int layer) {
  const std::string hf = fmt::format("transformer.h.{}.", layer);
  const std::int64_t width = m.hidden;
  const auto third = [&](std::int64_t i) {
    return GptNames::Product{{hf + "attn.c_attn.weight", {width, 3 * width}, 1, i * width, 3 * width},
                             {hf + "attn.c_attn.bias", {3 * width}, 1, i * width, 3 * width}};
  };
  const auto whole = [&](const std::string& name, std::int64_t in, std::int64_t out) {
    return GptNames::Product{{hf + name + ".weight", {in, out}}, {hf + name + ".bias", {out}}};
  };
  return {.attention_norm = hf + "ln_1",
          .ffn_norm = hf + "ln_2",
          .q = third(0),
          .k = third(1),
          .v = third(2),
          .out = whole("attn.c_proj", std::int64_t{m.heads} * m.head_dim, width),
          .up = whole("mlp.c_fc", width, m.ffn),
          .down = whole("mlp.c_proj", m.ffn, width)};
}

class Gpt {
 public:
  Gpt(const ModelSpec& model, const ModelUse& use)
      : b_(model, use, family_of(model)),
        block_(b_, GptBlock::Matrices::kInOut),
        io_(b_, "transformer.wte.weight"),
        positions_(b_.graph.add_dim("positions", std::max(model.positions, model.sequence))) {}

  Graph build() {
    TensorId x = b_.begins() ? embedded() : b_.load_port("in", b_.stream(), "port.in.residual");
    for (int l = b_.use.first_layer; l < b_.end_layer(); ++l) {
      b_.layer = l;
      x = block_.layer(l, x, names_of_layer(b_.model, l));
    }
    if (!b_.ends()) {
      b_.store_port("out", x);
      return std::move(b_.graph);
    }
    b_.layer = b_.model.layers;
    io_.end(block_.norm("final_norm", io_.last(x), "transformer.ln_f"));
    return std::move(b_.graph);
  }

 private:
  TensorId embedded() {
    const TensorId table = b_.matrix("positions", {positions_, b_.hidden}, {"transformer.wpe.weight"});
    const TensorId places = io_.positions();
    const TensorId tokens = io_.embedded("embed.out");
    const TensorId placed =
        b_.node("positions.lookup", op::Embedding{}, {places, table}, b_.stream(), "positions.residual");
    return b_.node("embed.add", op::Add{}, {tokens, placed}, b_.stream(), "embed.residual");
  }

  Builder b_;
  GptBlock block_;
  TokenIo io_;
  DimId positions_;
};

}  // namespace

Graph build_gpt2(const ModelSpec& model, const ModelUse& use) { return Gpt(model, use).build(); }

}  // namespace hyperrun

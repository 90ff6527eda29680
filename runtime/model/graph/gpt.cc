#include "runtime/model/graph/gpt.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "runtime/model/graph/attention.h"
#include "runtime/model/graph/builder.h"
#include "runtime/model/graph/token_io.h"

namespace hyperrun {
namespace {

constexpr DecoderTraits kNoTraits;

class Gpt {
 public:
  Gpt(const ModelSpec& model, const ModelUse& use)
      : b_(model, use, kNoTraits),
        io_(b_, "transformer.wte.weight"),
        positions_(b_.graph.add_dim("positions", std::max(model.positions, model.sequence))) {}

  Graph build() {
    TensorId x = embedded();
    for (int l = 0; l < b_.model.layers; ++l) {
      b_.layer = l;
      const std::string at = "layers." + std::to_string(l) + ".",
                        hf = "transformer.h." + std::to_string(l) + ".";
      x = attention(at + "attention.", hf, x);
      x = ffn(at + "ffn.", hf, x);
    }
    b_.layer = b_.model.layers;
    io_.end(norm("final_norm", io_.last(x), "transformer.ln_f"));
    return std::move(b_.graph);
  }

 private:
  // A product's weight and bias, as checkpoints have them.
  struct Saved {
    SavedAs weight, bias;
  };

  TensorId embedded() {
    const TensorId table = b_.matrix("positions", {positions_, b_.hidden}, {"transformer.wpe.weight"});
    const TensorId places = io_.positions();
    const TensorId tokens =
        b_.node("embed.lookup", op::Embedding{}, {io_.ids(), io_.embed()}, b_.stream(), "embed.out");
    const TensorId placed =
        b_.node("positions.lookup", op::Embedding{}, {places, table}, b_.stream(), "positions.residual");
    return b_.node("embed.add", op::Add{}, {tokens, placed}, b_.stream(), "embed.residual");
  }

  TensorId attention(const std::string& at, const std::string& hf, TensorId x) {
    const Dims heads{b_.kv_heads, b_.group, b_.head_dim}, of_keys{b_.kv_heads, b_.head_dim};
    const TensorId normed = norm(at + "norm", x, hf + "ln_1");
    const auto part = [&](const char* name, const Dims& dims, int i) {
      return biased(at + "w" + name, product(at + "w" + name, normed, {b_.hidden}, dims, third(hf, i)), dims,
                    third(hf, i), at + name);
    };
    const TensorId q = part("q", heads, 0), k = part("k", of_keys, 1), v = part("v", of_keys, 2);
    const Saved out = whole(hf + "attn.c_proj", b_.model.heads * b_.model.head_dim, b_.model.hidden);
    return onto(x, at, "wo", product(at + "wo", attend(b_, at, q, k, v), heads, {b_.hidden}, out), out);
  }

  TensorId ffn(const std::string& at, const std::string& hf, TensorId x) {
    const TensorId normed = norm(at + "norm", x, hf + "ln_2");
    const Saved in = whole(hf + "mlp.c_fc", b_.model.hidden, b_.model.ffn),
                out = whole(hf + "mlp.c_proj", b_.model.ffn, b_.model.hidden);
    const Dims wide{b_.ffn_width};
    const TensorId up =
        biased(at + "up", product(at + "up", normed, {b_.hidden}, wide, in), wide, in, at + "up.biased");
    const TensorId h = b_.node(at + "gelu", op::Gelu{}, {up}, b_.graph[up].dims, at + "h");
    return onto(x, at, "down", product(at + "down", h, wide, {b_.hidden}, out), out);
  }

  static Saved whole(const std::string& hf, std::int64_t in, std::int64_t out) {
    return {{hf + ".weight", {in, out}}, {hf + ".bias", {out}}};
  }
  // Queries, keys, values.
  Saved third(const std::string& hf, int i) const {
    const std::int64_t width = b_.model.hidden, from = i * width;
    return {{hf + "attn.c_attn.weight", {width, 3 * width}, 1, from, 3 * width},
            {hf + "attn.c_attn.bias", {3 * width}, 1, from, 3 * width}};
  }

  // Over the dimensions `in`. What goes to the residual stream begins the smaller the more layers add to it.
  TensorId product(const std::string& name, TensorId x, const Dims& in, const Dims& out, const Saved& saved) {
    const double depth = out == Dims{b_.hidden} ? std::sqrt(2.0 * b_.model.layers) : 1;
    Dims weight_dims = in;
    weight_dims.insert(weight_dims.end(), out.begin(), out.end());
    const TensorId w = b_.weight(name, weight_dims, saved.weight, op::InitNormal{b_.use.init_std / depth});
    return b_.node(name + ".product", op::Matmul{}, {x, w}, of_tokens(out), name + ".out");
  }

  TensorId biased(const std::string& name, TensorId x, const Dims& dims, const Saved& saved,
                  const std::string& out) {
    const TensorId bias = b_.weight(name + ".bias", dims, saved.bias, op::InitFill{0});
    return b_.node(name + ".bias.add", op::Add{}, {x, bias}, of_tokens(dims), out);
  }

  // The product's parts are summed as they are added to the stream; its bias comes behind that, once.
  TensorId onto(TensorId x, const std::string& at, const std::string& name, TensorId product,
                const Saved& saved) {
    const TensorId sum = b_.node(at + "add", op::Add{}, {x, product}, b_.stream(), at + "sum");
    return biased(at + name, sum, {b_.hidden}, saved, at + "residual");
  }

  TensorId norm(const std::string& name, TensorId x, const std::string& hf) {
    const TensorId w = b_.weight(name, {b_.hidden}, {hf + ".weight"}, op::InitFill{1});
    const TensorId bias = b_.weight(name + ".bias", {b_.hidden}, {hf + ".bias"}, op::InitFill{0});
    Dims rows = b_.graph[x].dims;
    const Dims whole = rows;
    rows.pop_back();
    const TensorId sums = b_.node(name + ".sums", op::RowSums{}, {x}, rows, name + ".sums");
    const TensorId squares =
        b_.node(name + ".squares", op::RowSquares{true}, {x, sums}, rows, name + ".squares");
    return b_.node(name, op::Norm{b_.model.norm_eps, true}, {x, w, squares, sums, bias}, whole,
                   name + ".out");
  }

  Dims of_tokens(const Dims& dims) const {
    Dims all{b_.batch, b_.seq};
    all.insert(all.end(), dims.begin(), dims.end());
    return all;
  }

  Builder b_;
  TokenIo io_;
  DimId positions_;
};

}  // namespace

Graph build_gpt2(const ModelSpec& model, const ModelUse& use) { return Gpt(model, use).build(); }

}  // namespace hyperrun

#include "runtime/model/graph/gpt_block.h"

#include <fmt/core.h>

#include <cmath>

#include "runtime/model/graph/attention.h"

namespace hyperrun {

TensorId GptBlock::layer(int l, TensorId x, const GptNames& names) const {
  const std::string at = fmt::format("layers.{}.", l);
  return ffn(at + "ffn.", attention(at + "attention.", x, names), names);
}

TensorId GptBlock::attention(const std::string& at, TensorId x, const GptNames& names) const {
  const Dims heads{b_.kv_heads, b_.group, b_.head_dim}, of_keys{b_.kv_heads, b_.head_dim};
  const TensorId normed = norm(at + "norm", x, names.attention_norm);
  const auto part = [&](const char* name, const Dims& dims, const GptNames::Product& saved) {
    return biased(at + "w" + name, product(at + "w" + name, normed, {b_.hidden}, dims, saved.weight), dims,
                  saved.bias, at + name);
  };
  const TensorId q = part("q", heads, names.q), k = part("k", of_keys, names.k),
                 v = part("v", of_keys, names.v);
  return b_.onto(x, at, product(at + "wo", attend(b_, at, q, k, v), heads, {b_.hidden}, names.out.weight),
                 {at + "wo", names.out.bias});
}

TensorId GptBlock::ffn(const std::string& at, TensorId x, const GptNames& names) const {
  const TensorId normed = norm(at + "norm", x, names.ffn_norm);
  const Dims wide{b_.ffn_width};
  const TensorId up = biased(at + "up", product(at + "up", normed, {b_.hidden}, wide, names.up.weight), wide,
                             names.up.bias, at + "up.biased");
  const TensorId h = b_.node(at + "gelu", op::Gelu{}, {up}, b_.graph[up].dims, at + "h");
  return b_.onto(x, at, product(at + "down", h, wide, {b_.hidden}, names.down.weight),
                 {at + "down", names.down.bias});
}

// A product over the dimensions `in`. Weights of products that add to the residual stream are initialised
// smaller, the more layers there are.
TensorId GptBlock::product(const std::string& name, TensorId x, const Dims& in, const Dims& out,
                           const SavedAs& saved) const {
  const double depth = out == Dims{b_.hidden} ? std::sqrt(2.0 * b_.model.layers) : 1;
  Dims weight_dims = matrices_ == Matrices::kInOut ? in : out;
  const Dims& behind = matrices_ == Matrices::kInOut ? out : in;
  weight_dims.insert(weight_dims.end(), behind.begin(), behind.end());
  const TensorId w = b_.weight(name, weight_dims, saved, op::InitNormal{b_.use.init_std / depth});
  return b_.node(name + ".product", op::Matmul{}, {x, w}, of_tokens(out), name + ".out");
}

TensorId GptBlock::biased(const std::string& name, TensorId x, const Dims& dims, const SavedAs& saved,
                          const std::string& out) const {
  return b_.biased(x, dims, {name, saved}, out);
}

TensorId GptBlock::norm(const std::string& name, TensorId x, const std::string& saved_as) const {
  const TensorId w = b_.weight(name, {b_.hidden}, {saved_as + ".weight"}, op::InitFill{1});
  const TensorId bias = b_.weight(name + ".bias", {b_.hidden}, {saved_as + ".bias"}, op::InitFill{0});
  Dims rows = b_.graph[x].dims;
  const Dims whole = rows;
  rows.pop_back();
  const TensorId sums = b_.node(name + ".sums", op::RowSums{}, {x}, rows, name + ".sums");
  const TensorId squares =
      b_.node(name + ".squares", op::RowSquares{true}, {x, sums}, rows, name + ".squares");
  return b_.node(name, op::Norm{b_.model.norm_eps, true}, {x, w, squares, sums, bias}, whole, name + ".out");
}

Dims GptBlock::of_tokens(const Dims& dims) const {
  Dims all{b_.batch, b_.seq};
  all.insert(all.end(), dims.begin(), dims.end());
  return all;
}

}  // namespace hyperrun

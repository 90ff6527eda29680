#include "runtime/model/graph/builder.h"

#include <algorithm>

#include "runtime/ir/requests.h"

namespace hyperrun {

Builder::Builder(const ModelSpec& m, const ModelUse& u, const ModelFamily& f)
    : model(m),
      use(u),
      family(f),
      batch(graph.add_dim("batch", u.batch)),
      seq(graph.add_dim("seq", u.generates() ? u.tokens : m.sequence)),
      hidden(graph.add_dim("hidden", m.hidden)),
      kv_heads(graph.add_dim("kv_heads", m.kv_heads)),
      group(graph.add_dim("group", m.heads / m.kv_heads)),
      head_dim(graph.add_dim("head_dim", m.head_dim)),
      ffn_width(graph.add_dim("ffn", m.ffn)),
      vocab(graph.add_dim("vocab", m.vocab)) {
  graph.dims[vocab.index()].pads = true;
  if (u.slots > 0) slots = graph.add_dim("slots", u.slots);
  if (!u.generates()) return;
  request = graph.add_dim("request", kRequestPages + (u.context + u.page - 1) / u.page);
  pages = graph.add_dim("pages", u.pages / u.batch);
  if (u.parts > 1) part = graph.add_dim("part", u.parts);
  page = graph.add_dim("page", u.page / u.parts);
}

TensorId Builder::node(const std::string& name, GraphOp op, std::vector<TensorId> inputs, Dims dims,
                       const std::string& out) {
  return nodes(name, std::move(op), std::move(inputs), {Tensor{out, DType::kF32, std::move(dims)}})[0];
}

std::vector<TensorId> Builder::nodes(const std::string& name, GraphOp op, std::vector<TensorId> inputs,
                                     std::vector<Tensor> outs) {
  return graph.add_node({name, std::move(op), std::move(inputs), {}, {}, Phase::kForward, layer},
                        std::move(outs));
}

TensorId Builder::weight(const std::string& name, Dims dims, SavedAs saved, GraphOp init) {
  if (saved.shape.empty())
    for (const DimId d : dims) saved.shape.push_back(graph[d].size);
  Tensor tensor{name, DType::kF32, std::move(dims), TensorClass::kWeight, {}, std::move(saved)};
  return graph.add_node({name + ".init", std::move(init), {}, {}, {}, Phase::kInit}, {std::move(tensor)})[0];
}

TensorId Builder::matrix(const std::string& name, Dims dims, SavedAs saved, std::size_t out_dims) {
  const bool sliced = saved.name.find('*') != std::string::npos;
  if (sliced) saved.slices = graph[dims[0]].size;
  if (saved.shape.empty()) {
    saved.shape.assign(2, 1);
    for (std::size_t d = sliced ? 1 : 0; d < dims.size(); ++d)
      saved.shape[d < out_dims ? 0 : 1] *= graph[dims[d]].size;
  }
  return weight(name, std::move(dims), std::move(saved), op::InitNormal{use.init_std});
}

TensorId Builder::load_port(const std::string& name, Dims dims, const std::string& out) {
  Dims of_all = dims;
  of_all.insert(of_all.begin(), slots);
  const TensorId port =
      graph.add_tensor({"port." + name, DType::kF32, std::move(of_all), TensorClass::kPort});
  return node("port." + name + ".load", op::LoadPort{}, {port}, std::move(dims), out);
}

void Builder::store_port(const std::string& name, TensorId x) {
  Tensor port{"port." + name, DType::kF32, graph[x].dims, TensorClass::kPort};
  port.dims.insert(port.dims.begin(), slots);
  Tensor stored = port;
  const TensorId state = graph.add_tensor(std::move(port));
  stored.name += ".stored";
  stored.updates = state;
  nodes("port." + name + ".store", op::StorePort{}, {x, state}, {std::move(stored)});
}

TensorId Builder::norm(const std::string& name, TensorId x, const std::string& saved_as) {
  const TensorId w = weight(name, {graph[x].dims.back()}, {saved_as}, op::InitFill{1});
  Dims rows = graph[x].dims;
  const Dims whole = rows;
  rows.pop_back();
  const TensorId squares = node(name + ".squares", op::RowSquares{}, {x}, rows, name + ".squares");
  return node(name, op::Norm{model.norm_eps}, {x, w, squares}, whole, name + ".out");
}

TensorId Builder::linear(const std::string& name, TensorId x, Dims weight_dims, Dims out, SavedAs saved) {
  // A weight has the output's dimensions that the input lacks, and those that are summed over.
  const auto out_dims = std::count_if(weight_dims.begin(), weight_dims.end(), [&](DimId d) {
    return std::find(out.begin(), out.end(), d) != out.end();
  });
  const TensorId w =
      matrix(name, std::move(weight_dims), std::move(saved), static_cast<std::size_t>(out_dims));
  return node(name + ".product", op::Matmul{}, {x, w}, std::move(out), name + ".out");
}

TensorId Builder::ffn(const std::string& at, const std::string& hf, TensorId x, DimId width, bool has_bias) {
  const Dims wide{batch, seq, width};
  const std::int64_t rows = graph[width].size, part = rows * model.hidden;
  const auto saved = [&](const char* matrix, std::int64_t number) {
    if (!family.fused) return SavedAs{hf + matrix + ".weight"};
    return SavedAs{hf + "gate_up_proj.weight", {2 * rows, model.hidden}, 1, number * part, 2 * part};
  };
  TensorId gate = linear(at + "gate", x, {width, hidden}, wide, saved("gate_proj", 0));
  TensorId up = linear(at + "up", x, {width, hidden}, wide, saved("up_proj", 1));
  if (has_bias) {
    gate = biased(gate, {width}, {at + "gate", {hf + "gate_proj.bias"}}, at + "gate.biased");
    up = biased(up, {width}, {at + "up", {hf + "up_proj.bias"}}, at + "up.biased");
  }
  const TensorId h = node(at + "swiglu", op::SwiGlu{}, {gate, up}, wide, at + "h");
  return linear(at + "down", h, {hidden, width}, stream(), {hf + "down_proj.weight"});
}

TensorId Builder::biased(TensorId x, const Dims& dims, const Bias& bias, const std::string& out) {
  const TensorId w = weight(bias.name + ".bias", dims, bias.saved, op::InitFill{0});
  return node(bias.name + ".bias.add", op::Add{}, {x, w}, graph[x].dims, out);
}

TensorId Builder::onto(TensorId x, const std::string& at, TensorId product, const Bias& bias) {
  const bool last = bias.name.empty();
  const TensorId sum = node(at + "add", op::Add{}, {x, product}, stream(), at + (last ? "residual" : "sum"));
  return last ? sum : biased(sum, {hidden}, bias, at + "residual");
}

}  // namespace hyperrun

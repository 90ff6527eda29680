// What the parts of a decoder are built with: nodes that are named in one manner, weights that know where a
// checkpoint has them.
#pragma once

#include <string>
#include <vector>

#include "runtime/model/graph/decoder.h"

namespace hyperrun {

using Dims = std::vector<DimId>;

struct Builder {
  Builder(const ModelSpec& m, const ModelUse& u, const DecoderTraits& t);

  // A node with one output.
  TensorId node(const std::string& name, GraphOp op, std::vector<TensorId> inputs, Dims dims,
                const std::string& out);
  std::vector<TensorId> nodes(const std::string& name, GraphOp op, std::vector<TensorId> inputs,
                              std::vector<Tensor> outs);

  // A weight that begins as `init` says. It is saved in a shape that is given, else with its own dimensions.
  TensorId weight(const std::string& name, Dims dims, SavedAs saved, GraphOp init);
  // A matrix, saved as [out, in]: dimensions that `out_dims` counts are its rows. With "*" in the name each
  // slice along the first dimension is. A shape that is given stays.
  TensorId matrix(const std::string& name, Dims dims, SavedAs saved, std::size_t out_dims = 1);

  TensorId norm(const std::string& name, TensorId x, const std::string& saved_as);  // over the last dimension
  TensorId linear(const std::string& name, TensorId x, Dims weight_dims, Dims out, SavedAs saved);
  // A SwiGLU of `width`.
  TensorId ffn(const std::string& at, const std::string& hf, TensorId x, DimId width);

  // Of a sub-model: what port "port.NAME" holds in this pass' slot, and what it is to hold.
  TensorId load_port(const std::string& name, Dims dims, const std::string& out);
  void store_port(const std::string& name, TensorId x);

  // Whether the model's first layer is among the layers that are built, and its last.
  bool begins() const { return use.first_layer == 0; }
  bool ends() const { return end_layer() == model.layers; }
  int end_layer() const { return use.end_layer < 0 ? model.layers : use.end_layer; }

  Dims stream() const { return {batch, seq, hidden}; }

  const ModelSpec& model;
  const ModelUse& use;
  const DecoderTraits& traits;
  Graph graph;
  DimId batch, seq, hidden, kv_heads, group, head_dim, ffn_width, vocab;
  DimId slots;  // of a sub-model's ports
  DimId request, pages, part,
      page;            // to generate; `pages`: of each sequence of the pass; `part`: none of one
  TensorId requests;   // to generate
  bool causal = true;  // attention: no token sees those behind it
  int layer = -1;      // being built; -1: before them, their number: behind them
};

}  // namespace hyperrun

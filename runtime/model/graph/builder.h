// The tools that build the parts of a model: nodes with uniform names, and weights with their places in a
// checkpoint.
#pragma once

#include <string>
#include <vector>

#include "runtime/model/graph/decoder.h"

namespace hyperrun {

using Dims = std::vector<DimId>;

struct Builder {
  Builder(const ModelSpec& m, const ModelUse& u, const ModelFamily& f);

  // A node with one output.
  TensorId node(const std::string& name, GraphOp op, std::vector<TensorId> inputs, Dims dims,
                const std::string& out);
  std::vector<TensorId> nodes(const std::string& name, GraphOp op, std::vector<TensorId> inputs,
                              std::vector<Tensor> outs);

  // A weight that `init` initialises. It is saved with the shape of `saved` if that is set, else with its
  // own.
  TensorId weight(const std::string& name, Dims dims, SavedAs saved, GraphOp init);
  // A matrix, saved as [out, in]; the first `out_dims` dimensions are its rows. With "*" in the name each
  // slice along the first dimension is such a matrix. The shape of `saved`, if set, has priority.
  TensorId matrix(const std::string& name, Dims dims, SavedAs saved, std::size_t out_dims = 1);

  TensorId norm(const std::string& name, TensorId x, const std::string& saved_as);  // over the last dimension
  TensorId linear(const std::string& name, TensorId x, Dims weight_dims, Dims out, SavedAs saved);
  // A SwiGLU of `width`. With `biased` gate and up have biases; the third one is onto()'s.
  TensorId ffn(const std::string& at, const std::string& hf, TensorId x, DimId width, bool biased = false);

  // The bias of the product `name`, and its place in a checkpoint. Without a name there is none.
  struct Bias {
    std::string name;
    SavedAs saved;
  };
  // x [batch, seq, dims ...] plus a bias [dims].
  TensorId biased(TensorId x, const Dims& dims, const Bias& bias, const std::string& out);
  // Adds a product to the residual stream. Partial results are reduced with that addition; a bias is added
  // after it, once.
  TensorId onto(TensorId x, const std::string& at, TensorId product, const Bias& bias);

  // For submodels: reads or writes this pass's slot of the port "port.NAME".
  TensorId load_port(const std::string& name, Dims dims, const std::string& out);
  void store_port(const std::string& name, TensorId x);

  // True if the model's first layer (begins) or its last (ends) is among the layers that are built.
  bool begins() const { return use.first_layer == 0; }
  bool ends() const { return end_layer() == model.layers; }
  int end_layer() const { return use.end_layer < 0 ? model.layers : use.end_layer; }

  Dims stream() const { return {batch, seq, hidden}; }

  const ModelSpec& model;
  const ModelUse& use;
  const ModelFamily& family;
  Graph graph;
  DimId batch, seq, hidden, kv_heads, group, head_dim, ffn_width, vocab;
  DimId slots;  // slots of a submodel's ports
  DimId request, pages, part,
      page;  // generation only; `pages`: pages of each sequence; `part`: invalid if there is one part
  TensorId requests;   // generation only
  bool causal = true;  // attention: no token sees later ones
  int layer = -1;      // the layer being built; -1: before the layers; number of layers: behind them
};

}  // namespace hyperrun

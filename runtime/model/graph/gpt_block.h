// Builds a layer of GPT-2, which other models use as well: a centered norm with a bias before attention, and
// another before two products with GELU between them. Attention has as many heads of keys as of queries;
// every product has a bias. There is no dropout.
#pragma once

#include <cstdint>
#include <string>

#include "runtime/model/graph/builder.h"

namespace hyperrun {

// The places of a layer's weights in a checkpoint.
struct GptNames {
  struct Product {
    SavedAs weight, bias;
  };
  std::string attention_norm, ffn_norm;  // without ".weight" and ".bias"
  Product q, k, v, out, up, down;
};

class GptBlock {
 public:
  // The order of a matrix's dimensions in a checkpoint.
  enum class Matrices : std::uint8_t { kInOut, kOutIn };

  GptBlock(Builder& builder, Matrices matrices) : b_(builder), matrices_(matrices) {}

  // The residual stream behind layer `l`.
  TensorId layer(int l, TensorId x, const GptNames& names) const;
  TensorId norm(const std::string& name, TensorId x, const std::string& saved_as) const;
  TensorId biased(const std::string& name, TensorId x, const Dims& dims, const SavedAs& saved,
                  const std::string& out) const;

 private:
  TensorId attention(const std::string& at, TensorId x, const GptNames& names) const;
  TensorId ffn(const std::string& at, TensorId x, const GptNames& names) const;
  TensorId product(const std::string& name, TensorId x, const Dims& in, const Dims& out,
                   const SavedAs& saved) const;
  Dims of_tokens(const Dims& dims) const;

  Builder& b_;
  Matrices matrices_;
};

}  // namespace hyperrun

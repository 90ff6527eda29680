// Builds a mixture of experts in place of a layer's SwiGLU.
#pragma once

#include <string>
#include <utility>

#include "runtime/model/graph/builder.h"

namespace hyperrun {

class ExpertsBlock {
 public:
  explicit ExpertsBlock(Builder& builder);

  // x, normed -> the addend of the residual stream. `at` and `hf` end with a point.
  TensorId operator()(const std::string& at, const std::string& hf, TensorId x) const;

 private:
  std::pair<TensorId, TensorId> route(const std::string& at, const std::string& hf, TensorId x) const;
  TensorId bias(const std::string& at, const std::string& hf) const;
  // The product of each expert's rows with its own matrix.
  TensorId each(const std::string& name, TensorId rows, TensorId counts, Dims weight_dims, DimId out,
                const std::string& saved_as) const;
  TensorId about(TensorId rows, TensorId counts) const;

  Builder& b_;
  const ExpertsSpec& spec_;
  DimId experts_, choices_, width_, shared_width_;
  std::int32_t capacity_ = 0, group_ = 0;  // Tensor::capacity and Tensor::group
};

}  // namespace hyperrun

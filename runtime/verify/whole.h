// Puts the whole value of a tensor together from the parts of the devices.
#pragma once

#include <cstddef>
#include <optional>
#include <utility>
#include <vector>

#include "runtime/ir/graph.h"

namespace hyperrun {

using Parts = std::vector<std::vector<std::byte>>;  // by device; empty: another stage has the tensor

// A tensor's shape and layout, which say which device has which part.
struct Placed {
  DType dtype = DType::kF32;
  std::vector<std::int64_t> shape;  // global
  Layout layout;
  std::vector<std::int64_t> rings;  // Dim::ring of each dimension; empty: all are in their natural order
  std::vector<std::int64_t> padding = {};  // Dim::padding of each dimension; empty: none
};
Placed placed(const Graph& graph, TensorId t);

// The whole value: slices are put together in their natural order; partial results are reduced in double, in
// the order of the devices. Padding is left out.
std::vector<double> whole(const Placed& tensor, const Mesh& mesh, const Parts& parts);

// The first two devices that hold the same part with different bits.
std::optional<std::pair<int, int>> disagreement(const Placed& tensor, const Mesh& mesh, const Parts& parts);

// The norm of the difference over the norm of `expected`; infinite where either is not finite. For an
// `expected` of zeros it is the norm of the difference alone.
double relative_difference(const std::vector<float>& expected, const std::vector<double>& actual);

}  // namespace hyperrun

// The whole value of a tensor from the parts that the devices hold.
#pragma once

#include <cstddef>
#include <optional>
#include <utility>
#include <vector>

#include "runtime/ir/graph.h"

namespace hyperrun {

using Parts = std::vector<std::vector<std::byte>>;  // by device; empty: it has none (another stage has it)

// A tensor's shape and how it lies: what says which part is whose.
struct Placed {
  DType dtype = DType::kF32;
  std::vector<std::int64_t> shape;  // global
  Layout layout;
  std::vector<std::int64_t> rings;  // of each dimension, see Dim::ring; none: all are in their natural order
};
Placed placed(const Graph& graph, TensorId t);

// Slices put together in their natural order, partial results reduced (in double, in the order of the
// devices).
std::vector<double> whole(const Placed& tensor, const Mesh& mesh, const Parts& parts);

// The first two devices that hold the same part, and not the same bits.
std::optional<std::pair<int, int>> disagreement(const Placed& tensor, const Mesh& mesh, const Parts& parts);

// Norm of the difference over the norm of `expected`; infinite where either is not finite. A tensor of zeros
// is left by the norm of the difference alone.
double relative_difference(const std::vector<float>& expected, const std::vector<double>& actual);

}  // namespace hyperrun

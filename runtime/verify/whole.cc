#include "runtime/verify/whole.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <map>

#include "runtime/base/error.h"
#include "runtime/device/tensor_parts.h"
#include "runtime/ir/zigzag.h"

namespace hyperrun {
namespace {

double element(const std::vector<std::byte>& bytes, std::size_t i, DType dtype) {
  const std::byte* at = bytes.data() + i * static_cast<std::size_t>(size_of(dtype));
  if (dtype == DType::kI32) {
    std::int32_t value = 0;
    std::memcpy(&value, at, sizeof value);
    return value;
  }
  if (dtype == DType::kBF16) {
    std::uint16_t value = 0;
    std::memcpy(&value, at, sizeof value);
    return static_cast<double>(bf16_to_f32(value));
  }
  float value = 0;
  std::memcpy(&value, at, sizeof value);
  return static_cast<double>(value);
}

// Restores the natural order from a ring's zigzag order.
std::vector<double> in_order(const std::vector<double>& values, const Placed& tensor, std::size_t dim) {
  const std::int64_t length = tensor.shape[dim];
  const Zigzag order = Zigzag::of(length, tensor.rings[dim]);
  std::int64_t inner = 1;
  for (std::size_t d = dim + 1; d < tensor.shape.size(); ++d) inner *= tensor.shape[d];
  std::vector<double> result(values.size());
  for (std::int64_t i = 0; i < std::ssize(values); ++i) {
    const std::int64_t place = i / inner % length;
    result[static_cast<std::size_t>(i + (order.position(place) - place) * inner)] =
        values[static_cast<std::size_t>(i)];
  }
  return result;
}

// Leaves out the padding of all dimensions.
std::vector<double> without_padding(std::vector<double> values, const Placed& tensor) {
  std::int64_t inner = 1;
  for (std::size_t d = tensor.padding.size(); d-- > 0; inner *= tensor.shape[d] - tensor.padding[d]) {
    if (tensor.padding[d] == 0) continue;
    const std::int64_t length = tensor.shape[d] * inner, kept = length - tensor.padding[d] * inner;
    std::vector<double> left;
    for (std::int64_t at = 0; at < std::ssize(values); at += length)
      left.insert(left.end(), values.begin() + at, values.begin() + at + kept);
    values = std::move(left);
  }
  return values;
}

}  // namespace

Placed placed(const Graph& graph, TensorId t) {
  Placed placed{graph[t].dtype, graph.shape(t), graph.layouts[t.index()], {}};
  for (const DimId d : graph[t].dims) {
    placed.rings.push_back(graph[d].ring);
    placed.padding.push_back(graph[d].padding);
  }
  return placed;
}

std::vector<double> whole(const Placed& tensor, const Mesh& mesh, const Parts& parts) {
  StateTensor as_state;
  as_state.dtype = tensor.dtype;
  as_state.shape = tensor.shape;
  as_state.layout = tensor.layout;
  std::size_t n = 1;
  for (const std::int64_t size : tensor.shape) n *= static_cast<std::size_t>(size);

  // Each place on the partial axes holds one addend of the whole.
  const AxisList partial = mesh.list(tensor.layout.partial);
  std::vector<double> result(n);
  std::vector<std::byte> addend(n * static_cast<std::size_t>(size_of(tensor.dtype)));
  for (std::int64_t p = 0; p < mesh.size(partial); ++p) {
    for (int d = 0; d < static_cast<int>(parts.size()); ++d) {
      std::vector<std::byte> part = parts[static_cast<std::size_t>(d)];
      if (part.empty() || mesh.index(d, partial) != p) continue;
      copy_part(as_state, mesh, d, 0, std::ssize(part), addend.data(), part.data(), PartCopy::kIntoWhole);
    }
    for (std::size_t i = 0; i < n; ++i) {
      const double value = element(addend, i, tensor.dtype);
      if (p == 0)
        result[i] = value;
      else
        result[i] =
            tensor.layout.reduction == Reduction::kMax ? std::max(result[i], value) : result[i] + value;
    }
  }
  for (std::size_t d = 0; d < tensor.rings.size(); ++d)
    if (tensor.rings[d] > 1) result = in_order(result, tensor, d);
  return without_padding(std::move(result), tensor);
}

std::optional<std::pair<int, int>> disagreement(const Placed& tensor, const Mesh& mesh, const Parts& parts) {
  const AxisList used = mesh.list(tensor.layout.used());
  std::map<std::int64_t, int> holder;  // by part: its first device
  for (int d = 0; d < static_cast<int>(parts.size()); ++d) {
    if (parts[static_cast<std::size_t>(d)].empty()) continue;
    const int first = holder.emplace(mesh.index(d, used), d).first->second;
    if (parts[static_cast<std::size_t>(first)] != parts[static_cast<std::size_t>(d)])
      return std::pair(first, d);
  }
  return {};
}

double relative_difference(const std::vector<float>& expected, const std::vector<double>& actual) {
  if (expected.size() != actual.size()) return std::numeric_limits<double>::infinity();
  double difference = 0, norm = 0;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const auto e = static_cast<double>(expected[i]);
    difference += (e - actual[i]) * (e - actual[i]);
    norm += e * e;
  }
  if (!std::isfinite(difference) || !std::isfinite(norm)) return std::numeric_limits<double>::infinity();
  return norm == 0 ? std::sqrt(difference) : std::sqrt(difference / norm);
}

}  // namespace hyperrun

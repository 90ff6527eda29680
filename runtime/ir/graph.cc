#include "runtime/ir/graph.h"

#include <algorithm>
#include <array>

#include "runtime/base/error.h"
#include "runtime/base/type_name.h"

namespace hyperrun {

std::string_view name(const GraphOp& op) {
  return std::visit([]<class Op>(const Op&) { return type_name<Op>(); }, op);
}

bool is_collective(const GraphOp& op) {
  return std::holds_alternative<op::AllReduce>(op) || std::holds_alternative<op::ReduceScatter>(op) ||
         std::holds_alternative<op::AllGather>(op) || std::holds_alternative<op::AllToAll>(op) ||
         std::holds_alternative<op::Shift>(op) || std::holds_alternative<op::ExchangeCounts>(op) ||
         std::holds_alternative<op::ExchangeRows>(op) || std::holds_alternative<op::Send>(op) ||
         std::holds_alternative<op::Recv>(op);
}

namespace {

// The size of one dimension of a device's part.
std::int64_t local_size(const Graph& graph, TensorId t, std::size_t dim, const Layout& layout,
                        const Mesh& mesh) {
  const std::int64_t size = graph[graph[t].dims[dim]].size, parts = mesh.size(layout.dims[dim]);
  HR_CHECK(size % parts == 0, "a layout that does not divide left the shard pass");
  return size / parts;
}

// The most groups of `size` tokens that `count` consecutive tokens touch. The first token's position is a
// multiple of `count`.
std::int64_t groups_touched(std::int64_t count, std::int64_t size) {
  const std::int64_t least = (count + size - 1) / size;
  return count % size == 0 || size % count == 0 ? least : least + 1;
}

// The most rows of experts that a device can get. A token brings a row for each expert that it chose, at most
// one for each expert of the device. With a capacity, memory holds no
// more of each group.
std::int64_t most_rows(const Graph& graph, TensorId t, const Layout& layout, const Mesh& mesh) {
  const Tensor& rows = graph[t];
  std::array<std::int64_t, 3> local{};
  for (std::size_t d = 0; d < local.size(); ++d) local[d] = local_size(graph, t, d, layout, mesh);
  const std::int64_t of_tokens = std::min<std::int64_t>(local[0], rows.choices) * local[1] * local[2];
  if (rows.capacity == 0) return of_tokens;
  // A device has two separate stretches of a sequence in zigzag order.
  const std::int64_t stretches = graph[rows.dims[2]].ring > 1 && !layout.dims[2].empty() ? 2 : 1;
  const std::int64_t groups = local[1] * stretches * groups_touched(local[2] / stretches, rows.group);
  return std::min(of_tokens, local[0] * groups * rows.capacity);
}

}  // namespace

std::int64_t local_elements(const Graph& graph, TensorId t, const Layout& layout, const Mesh& mesh) {
  const Tensor& tensor = graph[t];
  HR_CHECK(tensor.dims.size() == layout.dims.size());
  if (tensor.vectors > 0) return tensor.vectors * local_size(graph, t, 0, layout, mesh);
  const bool rows = tensor.counts.valid();
  std::int64_t n = rows ? most_rows(graph, t, layout, mesh) : 1;
  for (std::size_t d = rows ? 3 : 0; d < tensor.dims.size(); ++d) n *= local_size(graph, t, d, layout, mesh);
  return n;
}

GraphOp::GraphOp() = default;
GraphOp::GraphOp(const GraphOp&) = default;
GraphOp::GraphOp(GraphOp&&) noexcept = default;
GraphOp& GraphOp::operator=(const GraphOp&) = default;
GraphOp& GraphOp::operator=(GraphOp&&) noexcept = default;
GraphOp::~GraphOp() = default;
bool GraphOp::operator==(const GraphOp& other) const {
  return static_cast<const GraphOpKinds&>(*this) == static_cast<const GraphOpKinds&>(other);
}

std::int64_t expected_elements(const Graph& graph, TensorId t, const Layout& layout, const Mesh& mesh) {
  const std::int64_t most = local_elements(graph, t, layout, mesh);
  const Tensor& tensor = graph[t];
  if (!tensor.counts.valid()) return most;
  // Each token has `choices` rows, spread evenly over all experts; the device gets the share of its own ones.
  std::int64_t pairs = 1, width = 1;
  for (std::size_t d = 0; d < tensor.dims.size(); ++d)
    (d < 3 ? pairs : width) *= local_size(graph, t, d, layout, mesh);
  const std::int64_t rows = pairs * tensor.choices / graph[tensor.dims.front()].size;
  return std::min(most, rows * width);
}

Bytes empty_bytes(const Graph& graph, TensorId t, const Mesh& mesh) {
  if (!graph[t].counts.valid()) return Bytes(0);
  const Layout& layout = graph.layouts[t.index()];
  return Bytes(size_of(graph[t].dtype) *
               (local_elements(graph, t, layout, mesh) - expected_elements(graph, t, layout, mesh)));
}

DimId Graph::add_dim(std::string dim_name, std::int64_t size) {
  dims.push_back(Dim{std::move(dim_name), size});
  return DimId(static_cast<std::int64_t>(dims.size()) - 1);
}

TensorId Graph::add_tensor(Tensor t) {
  tensors.push_back(std::move(t));
  return TensorId(static_cast<std::int64_t>(tensors.size()) - 1);
}

std::vector<TensorId> Graph::add_node(Node n, std::vector<Tensor> outs) {
  for (Tensor& t : outs) n.outputs.push_back(add_tensor(std::move(t)));
  nodes.push_back(std::move(n));
  return nodes.back().outputs;
}

std::vector<std::int64_t> Graph::shape(TensorId t) const {
  std::vector<std::int64_t> sizes;
  sizes.reserve((*this)[t].dims.size());
  for (DimId d : (*this)[t].dims) sizes.push_back((*this)[d].size);
  return sizes;
}

std::int64_t Graph::elements(TensorId t) const {
  std::int64_t n = 1;
  for (DimId d : (*this)[t].dims) n *= (*this)[d].size;
  return n;
}

bool Graph::has_dim(TensorId t, DimId d) const {
  for (DimId e : (*this)[t].dims)
    if (d == e) return true;
  return false;
}

TensorId Graph::find(std::string_view tensor_name) const {
  for (std::size_t i = 0; i < tensors.size(); ++i)
    if (tensors[i].name == tensor_name) return TensorId(static_cast<std::int64_t>(i));
  return {};
}

TensorId storage_of(const Graph& graph, TensorId t) {
  while (graph[t].updates.valid()) t = graph[t].updates;
  return t;
}

bool is_state(TensorClass cls) {
  return cls == TensorClass::kWeight || cls == TensorClass::kOptimizer || cls == TensorClass::kConstant ||
         cls == TensorClass::kCache || cls == TensorClass::kPort;
}

bool is_accumulated(TensorClass cls) {
  return cls == TensorClass::kGradient || cls == TensorClass::kAccumulator;
}

}  // namespace hyperrun

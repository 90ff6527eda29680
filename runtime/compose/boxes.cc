#include "runtime/compose/boxes.h"

#include <algorithm>

namespace hyperrun {
namespace {

std::vector<std::int64_t> row_major(const std::vector<std::int64_t>& size) {
  std::vector<std::int64_t> strides(size.size(), 1);
  for (std::size_t d = size.size(); d-- > 1;) strides[d - 1] = strides[d] * size[d];
  return strides;
}

}  // namespace

std::int64_t elements(const Box& box) {
  std::int64_t n = 1;
  for (const std::int64_t size : box.size) n *= size;
  return n;
}

Box box_of(const StateTensor& t, const Mesh& mesh, int device) {
  Box box{{}, local_shape(t.shape, t.layout, mesh)};
  for (std::size_t d = 0; d < box.size.size(); ++d)
    box.first.push_back(mesh.index(device, t.layout.dims[d]) * box.size[d]);
  return box;
}

std::optional<Box> common(const Box& a, const Box& b) {
  Box both;
  for (std::size_t d = 0; d < a.size.size(); ++d) {
    const std::int64_t first = std::max(a.first[d], b.first[d]);
    const std::int64_t end = std::min(a.first[d] + a.size[d], b.first[d] + b.size[d]);
    if (end <= first) return std::nullopt;
    both.first.push_back(first);
    both.size.push_back(end - first);
  }
  return both;
}

Region region(BufferId buffer, DType dtype, const Box& whole, const Box& what) {
  Region r{{buffer, {}, {}, dtype}, row_major(whole.size), true};
  std::int64_t first = 0, last = 0, run = 1;
  for (std::size_t d = what.size.size(); d-- > 0;) {
    const std::int64_t from = what.first[d] - whole.first[d];
    first += from * r.strides[d];
    last += (from + what.size[d] - 1) * r.strides[d];
    r.contiguous = r.contiguous && (what.size[d] == 1 || r.strides[d] == run);
    run *= what.size[d];
  }
  r.operand.offset = Bytes(first * size_of(dtype));
  r.operand.bytes = Bytes((last - first + 1) * size_of(dtype));
  return r;
}

}  // namespace hyperrun

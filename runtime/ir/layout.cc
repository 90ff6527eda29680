#include "runtime/ir/layout.h"

#include "runtime/base/error.h"

namespace hyperrun {

AxisSet Layout::split_axes() const {
  AxisSet set;
  for (const AxisList& axes : dims) set = set | set_of(axes);
  return set;
}

int Layout::dim_of(AxisId a) const {
  for (std::size_t d = 0; d < dims.size(); ++d)
    for (AxisId b : dims[d])
      if (a == b) return static_cast<int>(d);
  return -1;
}

std::vector<std::int64_t> local_shape(std::vector<std::int64_t> shape, const Layout& layout,
                                      const Mesh& mesh) {
  HR_CHECK(shape.size() == layout.dims.size());
  for (std::size_t d = 0; d < shape.size(); ++d) {
    const std::int64_t parts = mesh.size(layout.dims[d]);
    HR_CHECK(shape[d] % parts == 0, "a layout that does not divide left the shard pass");
    shape[d] /= parts;
  }
  return shape;
}

std::string to_string(const Layout& layout, const Mesh& mesh) {
  std::string text = "[";
  for (std::size_t d = 0; d < layout.dims.size(); ++d)
    text += (d ? ", " : "") + mesh.to_string(layout.dims[d]);
  text += "]";
  if (!layout.partial.empty())
    text += std::string(" partial(") + (layout.reduction == Reduction::kSum ? "sum: " : "max: ") +
            mesh.to_string(mesh.list(layout.partial)) + ")";
  return text;
}

}  // namespace hyperrun

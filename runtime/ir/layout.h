// How a tensor lies on the mesh: for each of its dimensions the axes that split it, and the axes over
// which the devices hold partial results that still have to be reduced. An axis is used at most once.
// The slice of a dimension that a device holds is Mesh::index(device, dims[d]).
#pragma once

#include <string>
#include <vector>

#include "runtime/ir/mesh.h"

namespace hyperrun {

enum class Reduction : std::uint8_t { kSum, kMax };

struct Layout {
  std::vector<AxisList> dims;
  AxisSet partial;
  Reduction reduction = Reduction::kSum;  // of the partial axes; kSum when there are none

  static Layout replicated(std::size_t rank) {
    return Layout{std::vector<AxisList>(rank), {}, Reduction::kSum};
  }

  AxisSet split_axes() const;
  AxisSet used() const { return split_axes() | partial; }
  int dim_of(AxisId a) const;  // the dimension that `a` splits, -1 if none
  bool operator==(const Layout&) const = default;
};

// The size of each dimension on one device. HR_CHECKs that the layout divides.
std::vector<std::int64_t> local_shape(std::vector<std::int64_t> shape, const Layout& layout,
                                      const Mesh& mesh);

// "[dp, -, tp+cp] partial(sum: tp)"
std::string to_string(const Layout& layout, const Mesh& mesh);

}  // namespace hyperrun

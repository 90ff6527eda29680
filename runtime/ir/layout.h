// A tensor's layout on the mesh: the axes that split each dimension, and the axes over which devices hold
// partial results that still have to be reduced. An axis is used at most once. A device holds slice
// Mesh::index(device, dims[d]) of dimension d.
//
//   mesh dp 2 x tp 2, dims [dp, tp]:   device 0 | device 1     device 0 is (dp 0, tp 0)
//                                      ---------+---------     device 1 is (dp 0, tp 1)
//                                      device 2 | device 3     ...
#pragma once

#include <string>
#include <vector>

#include "runtime/ir/mesh.h"

namespace hyperrun {

enum class Reduction : std::uint8_t { kSum, kMax };

struct Layout {
  std::vector<AxisList> dims;
  AxisSet partial;
  Reduction reduction = Reduction::kSum;  // reduction over the partial axes; kSum when there are none

  static Layout replicated(std::size_t rank) {
    return Layout{std::vector<AxisList>(rank), {}, Reduction::kSum};
  }

  AxisSet split_axes() const;
  AxisSet used() const { return split_axes() | partial; }
  int dim_of(AxisId a) const;  // the dimension that `a` splits; -1: none
  bool operator==(const Layout&) const = default;
};

// The size of each dimension on one device. HR_CHECKs that the axes divide the dimensions.
std::vector<std::int64_t> local_shape(std::vector<std::int64_t> shape, const Layout& layout,
                                      const Mesh& mesh);

// "[dp, -, tp+cp] partial(sum: tp)"
std::string to_string(const Layout& layout, const Mesh& mesh);

}  // namespace hyperrun

// All layouts that a tensor can have on a mesh.
#pragma once

#include <algorithm>
#include <vector>

#include "runtime/ir/layout.h"

namespace hyperrun::testing {

inline bool divides(const std::vector<std::int64_t>& shape, const Layout& layout, const Mesh& mesh) {
  for (std::size_t d = 0; d < shape.size(); ++d)
    if (shape[d] % mesh.size(layout.dims[d]) != 0) return false;
  return true;
}

// Each axis splits one of the dimensions, is partial, or is not used; every order of the axes of a
// dimension.
inline std::vector<Layout> all_layouts(const std::vector<std::int64_t>& shape, const Mesh& mesh) {
  std::vector<Layout> list;
  AxisList order;
  for (AxisId a = 0; a < mesh.rank(); ++a) order.push_back(a);
  const auto places = static_cast<int>(shape.size()) + 2;  // a dimension, partial, unused
  do {
    std::vector<int> place(order.size(), 0);
    for (bool more = true; more;) {
      Layout layout = Layout::replicated(shape.size());
      for (std::size_t i = 0; i < order.size(); ++i) {
        if (place[i] < static_cast<int>(shape.size()))
          layout.dims[static_cast<std::size_t>(place[i])].push_back(order[i]);
        else if (place[i] == static_cast<int>(shape.size()))
          layout.partial.add(order[i]);
      }
      if (divides(shape, layout, mesh) && std::find(list.begin(), list.end(), layout) == list.end())
        list.push_back(layout);
      more = false;
      for (std::size_t i = 0; i < place.size() && !more; ++i) {
        more = ++place[i] < places;
        if (!more) place[i] = 0;
      }
    }
  } while (std::next_permutation(order.begin(), order.end()));
  return list;
}

}  // namespace hyperrun::testing

#include "runtime/ir/mesh.h"

namespace hyperrun {

AxisSet set_of(const AxisList& axes) {
  AxisSet set;
  for (AxisId a : axes) set.add(a);
  return set;
}

std::int64_t Mesh::size(const AxisList& list) const {
  std::int64_t n = 1;
  for (AxisId a : list) n *= size(a);
  return n;
}

std::int64_t Mesh::size(AxisSet set) const { return size(list(set)); }

std::int64_t Mesh::devices() const {
  std::int64_t n = 1;
  for (const MeshAxis& axis : axes) n *= axis.size;
  return n;
}

AxisId Mesh::find(std::string_view name) const {
  for (int a = 0; a < rank(); ++a)
    if (axes[static_cast<std::size_t>(a)].name == name) return a;
  return -1;
}

AxisList Mesh::list(AxisSet set) const {
  AxisList out;
  for (AxisId a = 0; a < rank(); ++a)
    if (set.has(a)) out.push_back(a);
  return out;
}

std::int64_t Mesh::coordinate(std::int64_t device, AxisId a) const {
  for (AxisId b = rank() - 1; b > a; --b) device /= size(b);
  return device % size(a);
}

std::int64_t Mesh::index(std::int64_t device, const AxisList& list) const {
  std::int64_t i = 0;
  for (AxisId a : list) i = i * size(a) + coordinate(device, a);
  return i;
}

std::vector<int> Mesh::group(std::int64_t device, const AxisList& list) const {
  std::vector<int> members(static_cast<std::size_t>(size(list)));
  const AxisSet moving = set_of(list);
  for (std::int64_t d = 0; d < devices(); ++d) {
    bool same = true;
    for (AxisId a = 0; a < rank() && same; ++a)
      same = moving.has(a) || coordinate(d, a) == coordinate(device, a);
    if (same) members[static_cast<std::size_t>(index(d, list))] = static_cast<int>(d);
  }
  return members;
}

std::string Mesh::to_string(const AxisList& list) const {
  std::string text;
  for (AxisId a : list) text += (text.empty() ? "" : "+") + axes[static_cast<std::size_t>(a)].name;
  return text.empty() ? "-" : text;
}

}  // namespace hyperrun

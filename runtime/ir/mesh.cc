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
  std::vector<std::int64_t> members{device};
  for (AxisId a : list) {
    std::int64_t stride = 1;
    for (AxisId b = a + 1; b < rank(); ++b) stride *= size(b);
    const std::int64_t own = coordinate(device, a);
    std::vector<std::int64_t> wider;
    wider.reserve(members.size() * static_cast<std::size_t>(size(a)));
    for (std::int64_t m : members)
      for (std::int64_t i = 0; i < size(a); ++i) wider.push_back(m + (i - own) * stride);
    members = std::move(wider);
  }
  return {members.begin(), members.end()};
}

std::string Mesh::to_string(const AxisList& list) const {
  std::string text;
  for (AxisId a : list) text += (text.empty() ? "" : "+") + axes[static_cast<std::size_t>(a)].name;
  return text.empty() ? "-" : text;
}

}  // namespace hyperrun

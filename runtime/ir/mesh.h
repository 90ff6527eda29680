// The device mesh: named axes over the ranks. A rank is the mixed-radix number of its coordinates; the first
// axis is major (slowest changing). In a mesh dp 2 x tp 4, rank 5 has the coordinates dp 1, tp 1.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/units.h"
#include "runtime/ir/axis_list.h"
#include "runtime/ir/job.h"

namespace hyperrun {

// A set of mesh axes. A mesh has kMostAxes at most.
struct AxisSet {
  std::uint32_t bits = 0;

  constexpr bool has(AxisId a) const { return (bits >> a) & 1u; }
  constexpr bool empty() const { return bits == 0; }
  constexpr void add(AxisId a) { bits |= 1u << a; }
  constexpr void remove(AxisId a) { bits &= ~(1u << a); }
  constexpr AxisSet operator|(AxisSet o) const { return {bits | o.bits}; }
  constexpr AxisSet operator&(AxisSet o) const { return {bits & o.bits}; }
  constexpr bool operator==(const AxisSet&) const = default;
};

AxisSet set_of(const AxisList& axes);

struct Mesh {
  std::vector<MeshAxis> axes;

  int rank() const { return static_cast<int>(axes.size()); }  // number of axes
  std::int64_t size(AxisId a) const { return axes[static_cast<std::size_t>(a)].size; }
  std::int64_t size(const AxisList& list) const;  // product of the axes' sizes
  std::int64_t size(AxisSet set) const;           // product of the axes' sizes
  std::int64_t devices() const;
  AxisId find(std::string_view name) const;  // -1: no such axis
  AxisList list(AxisSet set) const;          // in mesh order

  std::int64_t coordinate(std::int64_t device, AxisId a) const;
  // The mixed-radix number of the device's coordinates on `list`, major first. It is the index of its slice.
  std::int64_t index(std::int64_t device, const AxisList& list) const;
  // The devices that differ from `device` only on `list`, ordered by index().
  std::vector<int> group(std::int64_t device, const AxisList& list) const;

  std::string to_string(const AxisList& list) const;  // "dp+tp"
  bool operator==(const Mesh&) const = default;
};

}  // namespace hyperrun

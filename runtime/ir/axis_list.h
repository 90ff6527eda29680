// An ordered list of mesh axes: those that split a dimension of a tensor, or along which a collective runs.
// A layout has one list for each dimension, and searches for layouts copy them by the thousand. Therefore a
// list is a few bytes without memory of its own.
#pragma once

#include <algorithm>
#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <initializer_list>

#include "runtime/base/error.h"

namespace hyperrun {

using AxisId = std::int32_t;  // index into Mesh::axes

inline constexpr std::size_t kMostAxes = 32;  // the most axes of a mesh

// The axes, major first. Has the interface of std::vector<AxisId>; holds kMostAxes at most.
class AxisList {
 public:
  using value_type = std::int8_t;
  using iterator = value_type*;
  using const_iterator = const value_type*;

  AxisList() = default;
  AxisList(std::initializer_list<AxisId> axes) : AxisList(axes.begin(), axes.end()) {}
  template <class Iterator>
  AxisList(Iterator first, Iterator last) {
    for (; first != last; ++first) push_back(*first);
  }

  std::size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  iterator begin() { return axes_.data(); }
  iterator end() { return begin() + size_; }
  const_iterator begin() const { return axes_.data(); }
  const_iterator end() const { return begin() + size_; }
  AxisId operator[](std::size_t i) const { return axes_[i]; }
  AxisId front() const { return axes_[0]; }
  AxisId back() const { return *(end() - 1); }

  void push_back(AxisId axis) {
    HR_CHECK(size_ < kMostAxes);
    axes_[size_++] = static_cast<value_type>(axis);
  }
  void append(const AxisList& others) {
    for (const AxisId a : others) push_back(a);
  }
  void pop_back() { axes_[--size_] = 0; }
  template <class Predicate>
  void erase_if(Predicate is_out) {
    for (iterator last = std::remove_if(begin(), end(), is_out); end() != last;) pop_back();
  }

  // Lexicographic, like lists of integers, because entries behind the end are 0.
  auto operator<=>(const AxisList&) const = default;

 private:
  std::array<value_type, kMostAxes> axes_{};
  std::uint8_t size_ = 0;
};

}  // namespace hyperrun

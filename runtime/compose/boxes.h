// Parts of tensors as boxes, and where a box of a part lies in memory.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <vector>

#include "runtime/ir/program.h"

namespace hyperrun {

// A part of a tensor: so many of each dimension, from there on.
struct Box {
  std::vector<std::int64_t> first, size;
  auto operator<=>(const Box&) const = default;
};

std::int64_t elements(const Box& box);
Box box_of(const StateTensor& t, const Mesh& mesh, int device);
std::optional<Box> common(const Box& a, const Box& b);

// A box of a part, as an operand and the distances between its elements.
struct Region {
  Operand operand;
  std::vector<std::int64_t> strides;
  bool contiguous = true;  // its elements follow one another, row by row
};

// `what` of `whole`, which lies row by row in `buffer`.
Region region(BufferId buffer, DType dtype, const Box& whole, const Box& what);

}  // namespace hyperrun

// Parts of tensors as boxes of indices, and the memory of a box within a larger part.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <vector>

#include "runtime/ir/program.h"

namespace hyperrun {

// A part of a tensor: in each dimension d the indices first[d] to first[d] + size[d] - 1.
struct Box {
  std::vector<std::int64_t> first, size;
  auto operator<=>(const Box&) const = default;
};

std::int64_t elements(const Box& box);  // number of elements
// The part of the tensor on a device.
Box box_of(const StateTensor& t, const Mesh& mesh, int device);
// The intersection of two boxes; nullopt if it is empty.
std::optional<Box> common(const Box& a, const Box& b);

// A box in memory: an operand, and the strides between its elements.
struct Region {
  Operand operand;
  std::vector<std::int64_t> strides;  // by dimension, in elements
  bool contiguous = true;             // the elements are adjacent, in row-major order
};

// The region of the box `what` within the box `whole`, which `buffer` holds in row-major order.
Region region(BufferId buffer, DType dtype, const Box& whole, const Box& what);

}  // namespace hyperrun

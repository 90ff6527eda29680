// The part of a tensor that a device holds, as bytes of the whole tensor.
#pragma once

#include <cstddef>
#include <vector>

#include "runtime/ir/program.h"

namespace hyperrun {

// One device of a role for each different part: those whose other coordinates are 0.
std::vector<int> owners(const StateTensor& t, const Plan& plan, std::size_t role);

enum class PartCopy { kIntoWhole, kOutOfWhole };

// Copies bytes [from, from + bytes) of the device's (row-major) part between `part`, which points at the
// first of them, and `whole`.
void copy_part(const StateTensor& t, const Mesh& mesh, int device, std::int64_t from, std::int64_t bytes,
               std::byte* whole, std::byte* part, PartCopy direction);

}  // namespace hyperrun

// The part of a tensor that a device holds, as bytes of the whole tensor.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "runtime/ir/program.h"

namespace hyperrun {

// One device of a role for each different part: those whose other coordinates are 0.
std::vector<int> owners(const StateTensor& t, const Plan& plan, std::size_t role);

// A run of bytes that are contiguous both in a device's part and in the whole tensor.
struct PartRun {
  std::int64_t part = 0;   // first byte in the part
  std::int64_t whole = 0;  // first byte in the whole tensor
  std::int64_t bytes = 0;
};

// All runs of the device's part, in its order.
std::vector<PartRun> part_runs(const StateTensor& t, const Mesh& mesh, int device);

enum class PartCopy { kIntoWhole, kOutOfWhole };

// Copies bytes [from, from + bytes) of the device's (row-major) part between `part`, which points at the
// first of them, and `whole`.
void copy_part(const StateTensor& t, const Mesh& mesh, int device, std::int64_t from, std::int64_t bytes,
               std::byte* whole, std::byte* part, PartCopy direction);

}  // namespace hyperrun

// When the instructions of a Program use each of its buffers. A gap between two uses is what planning may
// turn into an eviction (offload_plan.h).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "runtime/ir/program.h"

namespace hyperrun {

// One instruction's use of a buffer. All operands in the same buffer count as one access.
struct Access {
  std::int32_t instr = 0;
  bool reads = false;  // true also if the instruction preserves part of the bytes
  bool writes = false;
  // A message arrives in the buffer, at an unknown time, so the buffer stays in HBM until the next use. A
  // Store that waited for it could deadlock: the sender may be waiting for this device.
  bool arrives = false;
};

struct BufferUses {
  std::vector<Access> accesses;  // in instruction order
  bool movable = false;          // planning may evict the buffer between two accesses
};

// `movable`: the categories that may leave HBM. Outputs and buffers smaller than a cache line always stay,
// and so do the row counts of experts: a transfer of rows reads them. For that reason every use of the rows
// also counts as an access of the counts.
std::vector<BufferUses> uses_of_buffers(const Program& program, std::span<const Category> movable);

}  // namespace hyperrun

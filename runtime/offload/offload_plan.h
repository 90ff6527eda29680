// The result of planning: which buffers of one Program leave HBM, and when.
//
//   instruction          0     1     2     3     4     5     6
//   uses of buffer b     write                         read
//   eviction             after = 0, leaves = 1, returns = 4
//   in HBM               ===========             ==================
//
// apply() (apply.h) adds a Store behind instruction 1 and a Prefetch before instruction 4.
#pragma once

#include <cstdint>
#include <vector>

namespace hyperrun {

// One stretch between two uses in which a buffer is not in HBM.
struct Eviction {
  std::int32_t buffer = 0;
  // Index of the access (BufferUses::accesses) before the eviction; -1: it is absent from the beginning.
  std::int32_t after = 0;
  // The last instruction at which the buffer is still in HBM; not before that access. -1: before the first.
  std::int32_t leaves = 0;
  // The first instruction at which it is back, at the latest the next access. The number of instructions
  // means that it does not return.
  std::int32_t returns = 0;
  // The instruction that is run again to restore the buffer. -1: its bytes are stored and fetched.
  std::int32_t producer = -1;
  bool operator==(const Eviction&) const = default;
};

// All evictions of one Program.
struct OffloadPlan {
  std::vector<Eviction> evictions;            // sorted by buffer and time
  std::vector<std::int32_t> offloaded_state;  // state buffers kept below HBM between invocations; ascending
  bool operator==(const OffloadPlan&) const = default;
};

}  // namespace hyperrun

// Static assignment of buffers to offsets: every lifetime is known before the job starts, so nothing is
// allocated while it runs. Pure bookkeeping; it owns no memory and serves HBM, pool and flash alike.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "runtime/base/units.h"

namespace hyperrun {

// A buffer is live from position `first` to position `last` of a program, both included. Functions on lists
// of lifetimes allocate memory for every position between the lowest and the highest.
struct Lifetime {
  std::int32_t first = 0;
  std::int32_t last = 0;
  Bytes bytes{};
};

struct Assignment {
  std::vector<Bytes> offsets;  // by lifetime; multiples of the alignment
  Bytes peak{};                // the end of the highest buffer
};

// The exact gap search looks at every pair of overlapping lifetimes. It is skipped beyond this many pairs.
inline constexpr std::int64_t kMostPairs = 10'000'000;

// Buffers that are live at the same position never overlap in address. Several orders of placement are tried;
// the lowest peak wins, or the first within `enough`. The result is deterministic. Empty buffers get offset
// 0. `alignment` is a power of two.
Assignment assign_offsets(std::span<const Lifetime> lifetimes, Bytes alignment = Bytes(64),
                          Bytes enough = Bytes(0), std::int64_t most_pairs = kMostPairs);

// The largest sum of live (aligned) bytes at any position: no assignment can have a lower peak.
Bytes max_live(std::span<const Lifetime> lifetimes, Bytes alignment = Bytes(64));

}  // namespace hyperrun

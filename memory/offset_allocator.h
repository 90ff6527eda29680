// Static assignment of buffers to offsets: every lifetime is known before the job starts, so nothing is
// allocated while it runs. Pure bookkeeping; it owns no memory and serves HBM, pool and flash alike.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "runtime/base/units.h"

namespace hyperrun {

// A buffer is live from position `first` to position `last` of a program, both included. What works on a list
// of them takes memory for all positions between the lowest and the highest.
struct Lifetime {
  std::int32_t first = 0;
  std::int32_t last = 0;
  Bytes bytes{};
};

struct Assignment {
  std::vector<Bytes> offsets;  // one a lifetime, multiples of the alignment
  Bytes peak{};                // the end of the highest buffer
};

// Exact gap search looks at every pair of buffers that meet; beyond this many it is left out.
inline constexpr std::int64_t kMostPairs = 10'000'000;

// No two buffers that live at the same position overlap in address. Tries several orders of placement and
// keeps the lowest peak, or the first that is not above `enough`; deterministic. Empty buffers get offset 0.
// alignment is a power of two.
Assignment assign_offsets(std::span<const Lifetime> lifetimes, Bytes alignment = Bytes(64),
                          Bytes enough = Bytes(0), std::int64_t most_pairs = kMostPairs);

// The largest sum of live (aligned) bytes at any position: no assignment can have a lower peak.
Bytes max_live(std::span<const Lifetime> lifetimes, Bytes alignment = Bytes(64));

}  // namespace hyperrun

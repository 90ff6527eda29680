// Where the devices' parts of the pool lie. The pool is one budget for all devices, and its memory is that of
// their hosts: each offers a share in proportion to its devices. Pure bookkeeping, the same on all ranks.
#pragma once

#include <span>
#include <vector>

#include "memory/host.h"
#include "runtime/base/units.h"

namespace hyperrun {

// Bytes of a device's part, in the segment that a rank lends.
struct PoolExtent {
  int rank = 0;
  Bytes offset{};  // in that rank's segment
  Bytes bytes{};
  bool operator==(const PoolExtent&) const = default;
};

struct PoolPlacement {
  std::vector<std::vector<PoolExtent>> parts;  // by device: its part, from the first byte to the last
  std::vector<Bytes> segments;                 // by rank: what it lends

  bool spills() const;                // whether any part has bytes on another host than its device's
  Bytes elsewhere(int device) const;  // of its part
};

// What each host offers of the budget: in proportion to its ranks, together exactly the budget.
std::vector<Bytes> pool_shares(const Topology& topology, Bytes budget);

// parts: of each device, together at most the budget. A part lies on its device's own host as far as the
// host's share lasts. Where it does not, the host's devices give up equally many bytes each (a device that
// has fewer: all), so that none waits for the network longer than its neighbours: the last bytes of their
// parts, which go, device by device, to the host that has most room left, there to the rank that holds least
// for others. Each segment begins with its own device's bytes.
PoolPlacement place_pool(const Topology& topology, Bytes budget, std::span<const Bytes> parts);

// The smallest budget with which every part lies on its own host.
Bytes pool_without_spill(const Topology& topology, std::span<const Bytes> parts);

}  // namespace hyperrun

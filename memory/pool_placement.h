// Places the devices' parts of the pool on hosts. The pool is one budget for all devices in the memory of
// their hosts; each host offers a share in proportion to its devices. Pure bookkeeping, with the same result
// on all ranks.
#pragma once

#include <span>
#include <vector>

#include "memory/host.h"
#include "runtime/base/units.h"

namespace hyperrun {

// A range of a device's part, in the segment that a rank lends.
struct PoolExtent {
  int rank = 0;
  Bytes offset{};  // in that rank's segment
  Bytes bytes{};
  bool operator==(const PoolExtent&) const = default;
};

struct PoolPlacement {
  std::vector<std::vector<PoolExtent>> parts;  // by device: its part in order of its bytes
  std::vector<Bytes> segments;                 // by rank: bytes that it lends

  bool spills() const;                // whether any part has bytes on another host than its device's
  Bytes elsewhere(int device) const;  // bytes of the device's part on other hosts
};

// The bytes that each host offers: in proportion to its ranks, exactly the budget together.
std::vector<Bytes> pool_shares(const Topology& topology, Bytes budget);

// `parts`: bytes by device, together at most the budget. A part lies on its device's own host as far as the
// host's share lasts.
//
// If the share is too small, the host's devices each give up the same number of bytes (or all, if a device
// has fewer), so that none waits for the network longer than its neighbours. They give up the last bytes of
// their parts. Device by device, these go to the host with the most room left, and there to the rank that
// holds the least for others. Each segment begins with its own device's bytes.
PoolPlacement place_pool(const Topology& topology, Bytes budget, std::span<const Bytes> parts);

// The smallest budget with which every part lies on its own host.
Bytes pool_without_spill(const Topology& topology, std::span<const Bytes> parts);

}  // namespace hyperrun

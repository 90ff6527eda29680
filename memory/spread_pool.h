// A device's part of the pool when not all of it lies on its own host.
#pragma once

#include <atomic>
#include <vector>

#include "memory/arena.h"
#include "memory/backing.h"
#include "memory/pool_placement.h"
#include "memory/remote_memory.h"

namespace hyperrun {

// Bytes in the device's own segment are copied, those in other ranks' go through RemoteMemory, which outlives
// it; all others but the owner of it may read and write while the owner moves it on.
class SpreadPool : public Backing {
 public:
  // segment: what this rank lends; its own device's bytes lie there. part: as place_pool found it.
  SpreadPool(Arena segment, std::vector<PoolExtent> part, RemoteMemory& remote);

  void read(Bytes offset, std::span<std::byte> into) override;
  void write(Bytes offset, std::span<const std::byte> from) override;
  Bytes high_water() const override { return Bytes(high_water_.load()); }
  Elsewhere elsewhere() const override { return {Bytes(read_.load()), Bytes(written_.load())}; }

 private:
  // Calls fn(extent, offset in its rank's segment, offset in the span, bytes) for what lies in [offset, ...).
  template <class Fn>
  void for_each_piece(Bytes offset, Bytes bytes, Fn fn) const;

  Arena segment_;
  std::vector<PoolExtent> part_;
  std::vector<Bytes> begins_;  // of the extents, in the part
  Bytes size_{};
  RemoteMemory& remote_;
  std::atomic<std::int64_t> high_water_{0}, read_{0}, written_{0};
};

}  // namespace hyperrun

// A device's part of the pool when some of it lies on other hosts.
#pragma once

#include <atomic>
#include <vector>

#include "memory/arena.h"
#include "memory/backing.h"
#include "memory/pool_placement.h"
#include "memory/remote_memory.h"

namespace hyperrun {

// Bytes in the device's own segment are copied; others go through RemoteMemory, which outlives this object.
// Any thread but the owner of the RemoteMemory may read and write while the owner makes progress.
class SpreadPool : public Backing {
 public:
  // `segment`: the memory that this rank lends, with its own device's bytes. `part`: from place_pool().
  SpreadPool(Arena segment, std::vector<PoolExtent> part, RemoteMemory& remote);

  void read(Bytes offset, std::span<std::byte> into) override;
  void write(Bytes offset, std::span<const std::byte> from) override;
  Bytes high_water() const override { return Bytes(high_water_.load()); }
  Elsewhere elsewhere() const override { return {Bytes(read_.load()), Bytes(written_.load())}; }

 private:
  // Calls fn(extent, offset in its rank's segment, offset in the span, bytes) for each piece of the range.
  template <class Fn>
  void for_each_piece(Bytes offset, Bytes bytes, Fn fn) const;

  Arena segment_;
  std::vector<PoolExtent> part_;
  std::vector<Bytes> begins_;  // by extent: its offset in the part
  Bytes size_{};
  RemoteMemory& remote_;
  std::atomic<std::int64_t> high_water_{0}, read_{0}, written_{0};
};

}  // namespace hyperrun

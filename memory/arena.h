// The HBM of an emulated NPU: a slab of exactly the budget, its planned peak pre-faulted, and where possible
// addressable by the other ranks of the host. No byte above the planned peak is ever touched, so a budget of
// many GiB costs addresses and not memory. Offsets come from a plan (offset_allocator.h); the arena only
// checks bounds and remembers the highest extent that was used.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "runtime/base/units.h"

namespace hyperrun {

class Arena {
 public:
  // slabs[r]: base of world rank r's slab in this process' address space, null when on another host.
  // owner keeps the mapping alive.
  Arena(Bytes budget, int rank, std::vector<std::byte*> slabs, std::shared_ptr<void> owner);

  Bytes budget() const { return budget_; }
  int rank() const { return rank_; }
  std::byte* base() const { return base_; }
  std::byte* peer_base(int rank) const { return slabs_[static_cast<std::size_t>(rank)]; }
  std::span<std::byte* const> slabs() const { return slabs_; }

  // The bytes at [offset, offset + bytes); HR_CHECKs that they lie within the budget.
  std::span<std::byte> view(Bytes offset, Bytes bytes) const;
  bool contains(const void* p, Bytes bytes) const;
  Bytes offset_of(const void* p) const;

  // High-water mark: the end of the highest extent in use so far. One owner thread.
  void touch(Bytes offset, Bytes bytes);
  Bytes high_water() const { return high_water_; }

 private:
  Bytes budget_, high_water_{};
  int rank_;
  std::byte* base_;
  std::vector<std::byte*> slabs_;
  std::shared_ptr<void> owner_;
};

// Gives every page of [base, base + bytes) memory now, so that no step pays for a first touch. The bytes
// keep their values (zero in fresh memory).
void prefault(std::byte* base, Bytes bytes, int threads = 1);

// Private memory of this process, zero, whose pages are taken at their first touch. Throws kDoesNotFit.
std::shared_ptr<std::byte> map_memory(Bytes bytes);

// Slabs of `ranks` devices that run as threads of this process; element r belongs to rank r. `prefaulted` as
// in make_shared_arena (shared_window.h): the planned peak; by default the whole budget.
std::vector<Arena> make_in_process_arenas(int ranks, Bytes budget);
std::vector<Arena> make_in_process_arenas(int ranks, Bytes budget, Bytes prefaulted);

}  // namespace hyperrun

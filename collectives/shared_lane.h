// Collectives among the members of a group on one host, through their HBM and control blocks. The steps of
// one collective, s: offer (publish s and where the buffers lie), take what the peers offer, retire
// (publish that s touches no peer's memory any more), and wait until the peers have retired it too.
#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

#include "collectives/block.h"
#include "collectives/control.h"
#include "collectives/cost.h"
#include "collectives/types.h"

namespace hyperrun {

struct LocalMember {
  int index = 0;  // in the group
  std::byte* arena = nullptr;
  Cell* cell = nullptr;
  Bell* bell = nullptr;
};

class SharedLane {
 public:
  // members: in the order of the group; me: this rank's place among them; p: members of the whole group.
  SharedLane(std::vector<LocalMember> members, int me, int p);

  // False while the slot of s is still in use by a slower peer.
  bool offer(std::uint64_t s, const CollectiveArgs& args, Algorithm algorithm);

  // Takes from the peers that have offered s; `cursor` counts them from 0 and keeps the place. True when all
  // is taken. Adds the bytes moved to `moved`.
  bool take(std::uint64_t s, const CollectiveArgs& args, Algorithm algorithm, int& cursor,
            std::int64_t& moved);

  // Hierarchical all-reduce: writes this rank's slice of out, reduced everywhere, to the local peers.
  void spread(std::uint64_t s, const CollectiveArgs& args, std::int64_t& moved);

  // `awaited`: peers may be waiting for it. After a one-shot none is: only who is kSlots ahead needs the
  // slot, and looks again when the next offer rings.
  void retire(std::uint64_t s, bool awaited = true);
  bool drained(std::uint64_t s);  // all members have retired s, this one too

  void ring_bell(int index) const;  // of the member with that index in the group

  int size() const { return static_cast<int>(members_.size()); }
  int me() const { return me_; }

 private:
  const LocalMember& member(int i) const { return members_[static_cast<std::size_t>(i)]; }
  bool ready(int i, std::uint64_t s) const;
  bool all_ready(std::uint64_t s, int& cursor) const;
  const std::byte* source(int i, std::uint64_t s, bool one_shot) const;
  std::byte* target(int i, std::uint64_t s) const;
  Offer& offer_of(int i, std::uint64_t s) const;
  std::byte* payload_of(int i, std::uint64_t s) const;
  std::byte* room_of(int i, std::uint64_t s, std::int64_t bytes) const;  // for a one-shot input
  void notify() const;

  void reduce_slice(std::uint64_t s, const CollectiveArgs& args, Algorithm algorithm, std::int64_t& moved);
  void reduce_rows(std::uint64_t s, const CollectiveArgs& args, bool one_shot, std::int64_t& moved);
  void plan(const CollectiveArgs& args, bool one_shot);
  void take_from(int i, std::uint64_t s, const CollectiveArgs& args, bool one_shot, std::int64_t& moved);

  std::vector<LocalMember> members_;
  int me_, p_;
  std::uint64_t drained_ = 0;  // all members have retired up to here
  std::vector<const std::byte*> sources_;
  std::vector<std::byte*> targets_;
  // Of the collective that is being taken: what each member's input holds for whom, and where in our output
  // what it gave goes.
  Blocks given_, taken_;
  std::int64_t input_bytes_ = 0;
};

}  // namespace hyperrun

// The shared-memory transport runs collectives among the members of a group on one host, through their HBM
// and control blocks. Collective s has four steps: offer (publish s and the offsets of the buffers), take the
// peers' offers, retire (publish that s touches no peer's memory any more), and wait until the peers have
// retired it too.
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
  int rank = -1;  // in the world
  // With checksums, else null: those of what this rank gives to the member, and of what it takes from it.
  Checksums* given = nullptr;
  const Checksums* taken = nullptr;
};

class SharedMemoryTransport {
 public:
  // `members` are in the order of the group, `me` is this rank's place among them, `p` counts the members of
  // the whole group.
  SharedMemoryTransport(std::vector<LocalMember> members, int me, int p);

  // Publishes collective s. Returns false while a slower peer still uses the slot of s.
  bool offer(std::uint64_t s, const CollectiveArgs& args, Algorithm algorithm);

  // Takes from the peers that have offered s; `cursor` counts them from 0 and keeps the place. Returns true
  // when all is taken. Adds the bytes moved to `moved`.
  bool take(std::uint64_t s, const CollectiveArgs& args, Algorithm algorithm, int& cursor,
            std::int64_t& moved);

  // Hierarchical all-reduce: writes this rank's slice of out, reduced everywhere, to the local peers.
  void spread(std::uint64_t s, const CollectiveArgs& args, std::int64_t& moved);

  // `awaited` means that peers may be waiting for it. Nobody waits for a one-shot: only a peer kSlots ahead
  // needs the slot, and it looks again when the next offer rings.
  void retire(std::uint64_t s, bool awaited = true);
  bool drained(std::uint64_t s);  // all members have retired s, this one too

  // With checksums: checks what the peers have reduced for this rank, and says that the slot of s may be used
  // again. Comes after drained(s).
  void check_results(std::uint64_t s, const CollectiveArgs& args, Algorithm algorithm);

  void ring_bell(int index) const;  // of the member with this index in the group

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
  std::byte* room_of(int i, std::uint64_t s, std::int64_t bytes) const;  // room for a one-shot input
  void notify() const;

  void reduce_slice(std::uint64_t s, const CollectiveArgs& args, Algorithm algorithm, std::int64_t& moved);
  void reduce_rows(std::uint64_t s, const CollectiveArgs& args, bool one_shot, std::int64_t& moved);
  void plan(const CollectiveArgs& args, bool one_shot);
  void take_from(int i, std::uint64_t s, const CollectiveArgs& args, bool one_shot, std::int64_t& moved);

  bool checksums() const { return member(me_).given != nullptr; }
  bool all_checked(std::uint64_t s);
  Block given_to(int i, const CollectiveArgs& args) const;
  void sum_input(std::uint64_t s, const CollectiveArgs& args, bool one_shot) const;
  void sum_result(std::uint64_t s, const CollectiveArgs& args) const;
  void check_input(int i, std::uint64_t s, const CollectiveArgs& args, const Block& data) const;
  void check_inputs(std::uint64_t s, const CollectiveArgs& args, bool one_shot) const;

  std::vector<LocalMember> members_;
  std::vector<Bell*> bells_;  // bells of the peers, each once, without this rank's own
  int me_, p_;
  std::uint64_t drained_ = 0;  // all members have retired up to this number
  std::uint64_t checked_ = 0;  // all members have checked up to this number
  std::vector<const std::byte*> sources_;
  std::vector<std::byte*> targets_;
  // Blocks of the collective that is being taken. `given_`: the part of a member's input for each peer.
  // `taken_`: the place in our output of each member's part.
  Blocks given_, taken_;
  std::int64_t input_bytes_ = 0;
};

}  // namespace hyperrun

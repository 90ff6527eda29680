// A message schedule is a collective as a sequence of steps. In each step a rank sends at most one block and
// receives at most one. It is only pointer arithmetic; message_transport.h executes it.
#pragma once

#include <vector>

#include "collectives/block.h"
#include "collectives/cost.h"
#include "collectives/selection.h"

namespace hyperrun {

// A range of a block's bytes, and the member (index in the group) that it goes to or comes from.
struct Transfer {
  int peer = -1;
  Block block;
  std::int64_t offset = 0, bytes = 0;
};

struct Step {
  Transfer send, receive;
  // If `combine`, received bytes are reduced with the bytes of `with` at the same offset: receive = with op
  // received.
  bool combine = false;
  Block with;
  bool signal = false;  // an empty message is sent all the same (barrier)
  bool reduce_all =
      false;  // after the step, reduce the range received from every peer, in order of the ranks
};

class MessageSchedule {
 public:
  MessageSchedule() = default;
  // The counts and starts of a kAllToAllV must outlive the schedule. `slots` are p - 1 receive slots of
  // slot_bytes for kPairwise reductions.
  MessageSchedule(Algorithm algorithm, const CollectiveArgs& args, int p, int me, std::byte* slots,
                  std::int64_t slot_bytes);

  int steps() const { return steps_; }
  Step step(int k) const;

  // The part that stays with this rank, copied before the first step. bytes() is 0 when there is none.
  Block local_source() const;
  Block local_target() const;

  // For reduce_all: this rank's contribution, and the slot of a peer's.
  Block own_source() const;
  std::byte* slot_of(int peer) const;
  // The elements that this rank reduces.
  Block reduced() const;

 private:
  int at(int offset) const { return ((me_ + offset) % p_ + p_) % p_; }
  std::int64_t element() const { return size_of(args_.dtype); }
  Block out_slice(int i) const { return out_slices(p_, i, i + 1); }
  Block out_slices(int parts, int first, int end) const;
  Block source_chunk(int i) const;
  Block v_block(bool sending, int peer) const;

  int count_steps() const;
  int pairwise_rounds() const;
  Step ring_all_reduce(int k) const;
  Step halving_doubling(int k) const;
  Step pairwise_reduce(int k) const;
  Step ring_reduce_scatter(int k) const;
  Step ring_all_gather(int k) const;
  Step pairwise_all_to_all(int k) const;
  Step shift() const;
  Step binomial(int k) const;
  Step dissemination(int k) const;

  Algorithm algorithm_{};
  CollectiveArgs args_;
  int p_ = 1, me_ = 0, steps_ = 0;
  std::byte* slots_ = nullptr;
  std::int64_t slot_bytes_ = 0;
};

}  // namespace hyperrun

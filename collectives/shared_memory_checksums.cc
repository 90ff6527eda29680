// The checksums of collectives in shared memory. A rank publishes, for each peer, that of the bytes which the
// peer takes from its input and, once it has reduced a slice for the peers, that of the slice.
#include <algorithm>
#include <utility>

#include "collectives/checksum.h"
#include "collectives/shared_memory_transport.h"

namespace hyperrun {

bool SharedMemoryTransport::all_checked(std::uint64_t s) {
  if (checked_ >= s) return true;
  std::uint64_t least = UINT64_MAX;
  for (int i = 0; i < size(); ++i)
    least = std::min(least, member(i).cell->checked.value.load(std::memory_order_acquire));
  if (least < s) return false;
  checked_ = least;
  return true;
}

// The part of this rank's input that a member takes without a copy in between.
Block SharedMemoryTransport::given_to(int i, const CollectiveArgs& args) const {
  const int peer = member(i).index;
  const std::int64_t element = size_of(args.dtype);
  switch (args.kind) {
    case Collective::kAllReduce: {
      const Slice part = slice(elements(args, p_), size(), i);
      return contiguous_block(args.in + part.begin * element, part.size() * element);
    }
    case Collective::kReduceScatter: return parts_of_all(args, p_, args.in).of(peer);
    case Collective::kAllGather: return own_part(args, args.in);
    case Collective::kAllToAll: return all_to_all_sources(args, p_, args.in).of(peer);
    case Collective::kAllToAllV: {
      const std::int64_t start = start_of(args.send_starts, args.send_counts, peer) * element;
      return contiguous_block(args.in + start, args.send_counts[static_cast<std::size_t>(peer)] * element);
    }
    default: return contiguous_block(args.in, args.outer * args.inner * element);
  }
}

void SharedMemoryTransport::sum_input(std::uint64_t s, const CollectiveArgs& args, bool one_shot) const {
  if (args.kind == Collective::kBarrier) return;
  const bool same_for_all =
      one_shot || args.kind == Collective::kAllGather || args.kind == Collective::kBroadcast;
  const std::int64_t packed = one_shot ? in_elements(args, p_) * size_of(args.dtype) : 0;
  std::uint64_t sum = 0;
  for (int k = 1; k < size(); ++k) {
    const int i = (me_ + k) % size();
    if (args.kind == Collective::kShift && k != 1 && !one_shot) continue;
    if (k == 1 || !same_for_all)
      sum = one_shot ? checksum(room_of(me_, s, packed), packed) : checksum(given_to(i, args));
    member(i).given->input[s % kSlots] = sum;
  }
}

// Checks bytes of member i's input: all of a packed one, else those that this rank takes.
void SharedMemoryTransport::check_input(int i, std::uint64_t s, const CollectiveArgs& args,
                                        const Block& data) const {
  if (i == me_) return;
  require_equal(member(i).taken->input[s % kSlots], checksum(data),
                {args.kind, member(i).rank, member(me_).rank, data.bytes()});
}

// The same for the inputs of all members, which are then reduced.
void SharedMemoryTransport::check_inputs(std::uint64_t s, const CollectiveArgs& args, bool one_shot) const {
  for (int i = 0; i < size(); ++i) {
    if (i == me_) continue;
    Block data = one_shot ? contiguous_block(source(i, s, true), input_bytes_) : given_to(me_, args);
    if (!one_shot) data.base = const_cast<std::byte*>(source(i, s, false)) + (data.base - args.in);
    check_input(i, s, args, data);
  }
}

void SharedMemoryTransport::sum_result(std::uint64_t s, const CollectiveArgs& args) const {
  const Slice mine = slice(elements(args, p_), size(), me_);
  const std::int64_t element = size_of(args.dtype);
  const std::uint64_t sum = checksum(args.out + mine.begin * element, mine.size() * element);
  for (int i = 0; i < size(); ++i)
    if (i != me_) member(i).given->result[s % kSlots] = sum;
}

void SharedMemoryTransport::check_results(std::uint64_t s, const CollectiveArgs& args, Algorithm algorithm) {
  if (!checksums()) return;
  const std::int64_t element = size_of(args.dtype);
  const bool by_peers = args.kind == Collective::kAllReduce && algorithm != Algorithm::kOneShot;
  for (int i = 0; by_peers && i < size(); ++i) {
    if (i == me_) continue;
    const Slice theirs = slice(elements(args, p_), size(), i);
    const std::int64_t bytes = theirs.size() * element;
    require_equal(member(i).taken->result[s % kSlots], checksum(args.out + theirs.begin * element, bytes),
                  {args.kind, member(i).rank, member(me_).rank, bytes});
  }
  member(me_).cell->checked.value.store(s, std::memory_order_release);
  notify();
}

}  // namespace hyperrun

#include "collectives/shared_memory_transport.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "collectives/block.h"
#include "collectives/reduce.h"
#include "runtime/base/error.h"

namespace hyperrun {
namespace {

bool reduces(const CollectiveArgs& args) {
  return args.kind == Collective::kAllReduce || args.kind == Collective::kReduceScatter;
}

// For kAllToAllV: the start of each peer's block in the sender's input, in bytes.
void write_displacements(const CollectiveArgs& args, std::byte* payload) {
  HR_CHECK(args.send_counts.size() * sizeof(std::int64_t) <= static_cast<std::size_t>(kOneShotBytes),
           "group too large for a host");
  std::int64_t before = 0;
  for (std::size_t r = 0; r < args.send_counts.size(); ++r) {
    const std::int64_t at = (args.send_starts.empty() ? before : args.send_starts[r]) * size_of(args.dtype);
    std::memcpy(payload + r * sizeof(at), &at, sizeof(at));
    before += args.send_counts[r];
  }
}

std::int64_t read_displacement(const std::byte* payload, int r) {
  std::int64_t at = 0;
  std::memcpy(&at, payload + static_cast<std::size_t>(r) * sizeof(at), sizeof(at));
  return at;
}

}  // namespace

SharedMemoryTransport::SharedMemoryTransport(std::vector<LocalMember> members, int me, int p)
    : members_(std::move(members)), me_(me), p_(p), sources_(members_.size()), targets_(members_.size()) {
  for (const LocalMember& m : members_)
    if (m.bell != member(me_).bell && std::ranges::find(bells_, m.bell) == bells_.end())
      bells_.push_back(m.bell);
}

Offer& SharedMemoryTransport::offer_of(int i, std::uint64_t s) const {
  return member(i).cell->offers[s % kSlots];
}

std::byte* SharedMemoryTransport::payload_of(int i, std::uint64_t s) const {
  return member(i).cell->payloads[s % kSlots].bytes.data();
}

std::byte* SharedMemoryTransport::room_of(int i, std::uint64_t s, std::int64_t bytes) const {
  Offer& offer = offer_of(i, s);
  return bytes <= static_cast<std::int64_t>(offer.tiny.size()) ? offer.tiny.data() : payload_of(i, s);
}

bool SharedMemoryTransport::ready(int i, std::uint64_t s) const {
  return i == me_ || offer_of(i, s).number.load(std::memory_order_acquire) == s;
}

bool SharedMemoryTransport::all_ready(std::uint64_t s, int& cursor) const {
  while (cursor < size() && ready(cursor, s)) ++cursor;
  return cursor == size();
}

// The place of a one-shot input is known without the offer, so that both are fetched at once.
const std::byte* SharedMemoryTransport::source(int i, std::uint64_t s, bool one_shot) const {
  return one_shot ? room_of(i, s, input_bytes_) : member(i).arena + offer_of(i, s).in;
}

std::byte* SharedMemoryTransport::target(int i, std::uint64_t s) const {
  return member(i).arena + offer_of(i, s).out;
}

// The fence pairs with the one before a sleeper's last look.
void SharedMemoryTransport::notify() const {
  std::atomic_thread_fence(std::memory_order_seq_cst);
  for (Bell* bell : bells_) ring(*bell);
}

void SharedMemoryTransport::ring_bell(int index) const {
  std::atomic_thread_fence(std::memory_order_seq_cst);
  for (const LocalMember& m : members_) {
    if (m.index == index) ring(*m.bell);
  }
}

bool SharedMemoryTransport::offer(std::uint64_t s, const CollectiveArgs& args, Algorithm algorithm) {
  if (s > kSlots && !drained(s - kSlots)) return false;
  if (checksums() && s > kSlots && !all_checked(s - kSlots)) return false;
  Offer& mine = offer_of(me_, s);
  const std::byte* arena = member(me_).arena;
  const bool gives = args.kind != Collective::kBroadcast || member(me_).index == args.peer;
  if (algorithm == Algorithm::kOneShot && gives) {
    const std::int64_t bytes = in_elements(args, p_) * size_of(args.dtype);
    if (bytes > 0) pack_input(args, p_, room_of(me_, s, bytes));
  }
  if (args.kind == Collective::kAllToAllV) write_displacements(args, payload_of(me_, s));
  if (checksums() && gives) sum_input(s, args, algorithm == Algorithm::kOneShot);
  // Write the whole offer at once: peers that watch it already take its line away from us.
  mine.in = args.in == nullptr ? 0 : args.in - arena;
  mine.out = args.out == nullptr ? 0 : args.out - arena;
  mine.number.store(s, std::memory_order_release);
  notify();
  return true;
}

void SharedMemoryTransport::retire(std::uint64_t s, bool awaited) {
  member(me_).cell->done.value.store(s, std::memory_order_release);
  if (awaited) notify();
}

bool SharedMemoryTransport::drained(std::uint64_t s) {
  if (drained_ >= s) return true;
  std::uint64_t least = UINT64_MAX;
  for (int i = 0; i < size(); ++i) {
    least = std::min(least, member(i).cell->done.value.load(std::memory_order_acquire));
    if (least < s) return false;
  }
  drained_ = least;
  return true;
}

bool SharedMemoryTransport::take(std::uint64_t s, const CollectiveArgs& args, Algorithm algorithm,
                                 int& cursor, std::int64_t& moved) {
  const bool one_shot = algorithm == Algorithm::kOneShot;
  if (cursor == 0) plan(args, one_shot);
  if (reduces(args) || args.kind == Collective::kBarrier) {
    if (!all_ready(s, cursor)) return false;
    if (checksums() && reduces(args)) check_inputs(s, args, one_shot);
    if (args.kind == Collective::kAllReduce) reduce_slice(s, args, algorithm, moved);
    if (args.kind == Collective::kReduceScatter) reduce_rows(s, args, one_shot, moved);
    return true;
  }
  // Each rank starts at its own offset, so that they do not all read the same peer.
  for (; cursor < size(); ++cursor) {
    const int i = me_ + cursor < size() ? me_ + cursor : me_ + cursor - size();
    if (args.kind == Collective::kBroadcast && member(i).index != args.peer) continue;
    if (args.kind == Collective::kShift && (i + 1) % size() != me_) continue;
    if (!ready(i, s)) return false;
    take_from(i, s, args, one_shot, moved);
  }
  return true;
}

// With kOneShot every rank reduces all elements. With kDirect each reduces its slice and writes it to all.
// With kHierarchical each reduces its slice for itself.
void SharedMemoryTransport::reduce_slice(std::uint64_t s, const CollectiveArgs& args, Algorithm algorithm,
                                         std::int64_t& moved) {
  const std::int64_t n = elements(args, p_), element = size_of(args.dtype);
  const bool one_shot = algorithm == Algorithm::kOneShot;
  const Slice mine = one_shot ? Slice{0, n} : slice(n, size(), me_);
  for (int i = 0; i < size(); ++i) {
    sources_[static_cast<std::size_t>(i)] = source(i, s, one_shot) + mine.begin * element;
    targets_[static_cast<std::size_t>(i)] = target(i, s) + mine.begin * element;
  }
  std::span<std::byte* const> targets = targets_;
  if (algorithm != Algorithm::kDirect) targets = targets.subspan(static_cast<std::size_t>(me_), 1);
  reduce(args.dtype, args.op, sources_, targets, mine.size());
  if (checksums() && algorithm == Algorithm::kDirect) sum_result(s, args);
  moved += mine.size() * element * (size() - 1) * (algorithm == Algorithm::kDirect ? 2 : 1);
}

void SharedMemoryTransport::reduce_rows(std::uint64_t s, const CollectiveArgs& args, bool one_shot,
                                        std::int64_t& moved) {
  const std::int64_t element = size_of(args.dtype), runs = args.pitch == 0 ? 1 : args.runs;
  const std::int64_t run = args.inner / runs * element;
  const std::int64_t pitch = args.pitch == 0 ? run : args.pitch * element, packed = one_shot ? run : pitch;
  for (std::int64_t r = 0; r < args.outer * runs; ++r) {
    const std::int64_t at = ((r / runs * p_ + member(me_).index) * runs + r % runs) * packed;
    for (int i = 0; i < size(); ++i) sources_[static_cast<std::size_t>(i)] = source(i, s, one_shot) + at;
    std::byte* out = args.out + r * pitch;
    reduce(args.dtype, args.op, sources_, {&out, 1}, args.inner / runs);
  }
  moved += args.outer * runs * run * (size() - 1);
}

// Computes the blocks once a collective for all members: the divisions take as long as a small message.
void SharedMemoryTransport::plan(const CollectiveArgs& args, bool one_shot) {
  const std::int64_t element = size_of(args.dtype), bytes = args.outer * args.inner * element;
  input_bytes_ = in_elements(args, p_) * element;
  if (reduces(args)) return;
  given_ = {contiguous_block(args.in, bytes)};
  taken_ = {contiguous_block(args.out, bytes)};
  const CollectiveArgs given = one_shot ? with_packed_input(args) : args;
  if (args.kind == Collective::kAllGather) {
    given_ = {own_part(given, args.in)};
    taken_ = parts_of_all(args, p_, args.out);
  }
  if (args.kind == Collective::kAllToAll) {
    given_ = all_to_all_sources(given, p_, args.in);
    taken_ = all_to_all_targets(args, p_, args.out);
  }
}

void SharedMemoryTransport::take_from(int i, std::uint64_t s, const CollectiveArgs& args, bool one_shot,
                                      std::int64_t& moved) {
  const int peer = member(i).index, self = member(me_).index;
  const std::byte* in = source(i, s, one_shot);
  Block from = given_.of(self, in), to = taken_.of(peer);
  if (args.kind == Collective::kAllToAllV) {
    const std::int64_t element = size_of(args.dtype);
    const std::int64_t bytes = args.recv_counts[static_cast<std::size_t>(peer)] * element;
    const std::int64_t start = start_of(args.recv_starts, args.recv_counts, peer) * element;
    from = contiguous_block(in + read_displacement(payload_of(i, s), self), bytes);
    to = contiguous_block(args.out + start, bytes);
  }
  copy(to, from);
  if (checksums()) check_input(i, s, args, one_shot ? contiguous_block(in, input_bytes_) : to);
  if (i != me_) moved += from.bytes();
}

void SharedMemoryTransport::spread(std::uint64_t s, const CollectiveArgs& args, std::int64_t& moved) {
  const std::int64_t element = size_of(args.dtype);
  const Slice mine = slice(elements(args, p_), size(), me_);
  const auto bytes = static_cast<std::size_t>(mine.size() * element);
  for (int k = 1; k < size(); ++k) {
    std::memcpy(target((me_ + k) % size(), s) + mine.begin * element, args.out + mine.begin * element, bytes);
    moved += mine.size() * element;
  }
  if (checksums()) sum_result(s, args);
}

}  // namespace hyperrun

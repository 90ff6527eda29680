#include "collectives/message_schedule.h"

#include <algorithm>
#include <bit>

#include "runtime/base/error.h"

namespace hyperrun {
namespace {

int log2_ceil(int p) { return std::bit_width(static_cast<unsigned>(p - 1)); }

Transfer whole(int peer, const Block& block) {
  return {.peer = peer, .block = block, .offset = 0, .bytes = block.bytes()};
}

Transfer part(int peer, const Block& block, std::int64_t offset, std::int64_t most) {
  return {.peer = peer,
          .block = block,
          .offset = offset,
          .bytes = std::clamp<std::int64_t>(block.bytes() - offset, 0, most)};
}

}  // namespace

MessageSchedule::MessageSchedule(Algorithm algorithm, const CollectiveArgs& args, int p, int me,
                                 std::byte* slots, std::int64_t slot_bytes)
    : algorithm_(algorithm), args_(args), p_(p), me_(me), slots_(slots), slot_bytes_(slot_bytes) {
  steps_ = p > 1 ? count_steps() : 0;
}

int MessageSchedule::pairwise_rounds() const {
  const std::int64_t largest = args_.kind == Collective::kAllReduce
                                   ? slice(args_.outer * args_.inner, p_, 0).size() * element()
                                   : args_.outer * args_.inner * element();
  return static_cast<int>((largest + slot_bytes_ - 1) / slot_bytes_);
}

int MessageSchedule::count_steps() const {
  const bool reduces = args_.kind == Collective::kAllReduce || args_.kind == Collective::kReduceScatter;
  const int q = static_cast<int>(std::bit_floor(static_cast<unsigned>(p_)));
  switch (algorithm_) {
    case Algorithm::kRing: return args_.kind == Collective::kAllReduce ? 2 * (p_ - 1) : p_ - 1;
    case Algorithm::kHalvingDoubling: return 2 * (log2_ceil(q) + (p_ > q ? 1 : 0));
    case Algorithm::kPairwise:
      if (args_.kind == Collective::kShift) return 1;
      if (!reduces) return p_ - 1;
      return (p_ - 1) * (pairwise_rounds() + (args_.kind == Collective::kAllReduce ? 1 : 0));
    case Algorithm::kBinomial:
    case Algorithm::kDissemination: return log2_ceil(p_);
    default: HR_CHECK(false, "not an algorithm by messages");
  }
}

Step MessageSchedule::step(int k) const {
  switch (algorithm_) {
    case Algorithm::kHalvingDoubling: return halving_doubling(k);
    case Algorithm::kBinomial: return binomial(k);
    case Algorithm::kDissemination: return dissemination(k);
    case Algorithm::kPairwise:
      if (args_.kind == Collective::kAllToAll || args_.kind == Collective::kAllToAllV)
        return pairwise_all_to_all(k);
      if (args_.kind == Collective::kShift) return shift();
      return pairwise_reduce(k);
    default: break;
  }
  if (args_.kind == Collective::kAllReduce) return ring_all_reduce(k);
  return args_.kind == Collective::kReduceScatter ? ring_reduce_scatter(k) : ring_all_gather(k);
}

// The in-place algorithms work on `out`; kPairwise reads the input in place.
Block MessageSchedule::local_source() const {
  switch (args_.kind) {
    case Collective::kAllReduce:
      if (algorithm_ == Algorithm::kPairwise && p_ > 1) return {};
      return contiguous_block(args_.in, args_.outer * args_.inner * element());
    case Collective::kReduceScatter: return p_ > 1 ? Block{} : source_chunk(0);
    case Collective::kAllGather: return own_part(args_, args_.in);
    case Collective::kAllToAll: return all_to_all_sources(args_, p_, args_.in).of(me_);
    case Collective::kAllToAllV: return v_block(true, me_);
    case Collective::kBroadcast:
      return me_ == args_.peer ? contiguous_block(args_.in, args_.outer * args_.inner * element()) : Block{};
    default: return {};
  }
}

Block MessageSchedule::local_target() const {
  switch (args_.kind) {
    case Collective::kReduceScatter: return own_part(args_, args_.out);
    case Collective::kAllGather: return parts_of_all(args_, p_, args_.out).of(me_);
    case Collective::kAllToAll: return all_to_all_targets(args_, p_, args_.out).of(me_);
    case Collective::kAllToAllV: return v_block(false, me_);
    default: return contiguous_block(args_.out, args_.outer * args_.inner * element());
  }
}

Block MessageSchedule::out_slices(int parts, int first, int end) const {
  const std::int64_t n = args_.outer * args_.inner;
  const std::int64_t from = slice(n, parts, first).begin, to = slice(n, parts, end - 1).end;
  return contiguous_block(args_.out + from * element(), (to - from) * element());
}

// The chunk of the input that is reduced at rank i.
Block MessageSchedule::source_chunk(int i) const {
  if (args_.kind == Collective::kReduceScatter) return parts_of_all(args_, p_, args_.in).of(i);
  const Slice s = slice(args_.outer * args_.inner, p_, i);
  return contiguous_block(args_.in + s.begin * element(), s.size() * element());
}

Block MessageSchedule::own_source() const { return source_chunk(me_); }

Block MessageSchedule::reduced() const {
  return args_.kind == Collective::kAllReduce ? out_slice(me_) : local_target();
}

std::byte* MessageSchedule::slot_of(int peer) const {
  return slots_ + ((me_ - 1 - peer + 2 * p_) % p_) * slot_bytes_;
}

Block MessageSchedule::v_block(bool sending, int peer) const {
  const auto counts = sending ? args_.send_counts : args_.recv_counts;
  const std::int64_t start = start_of(sending ? args_.send_starts : args_.recv_starts, counts, peer);
  const std::byte* base = sending ? args_.in : args_.out;
  return contiguous_block(base + start * element(), counts[static_cast<std::size_t>(peer)] * element());
}

// Slice i starts at rank i and goes once round, gathering sums; then the sums go once round.
Step MessageSchedule::ring_all_reduce(int k) const {
  if (k >= p_ - 1) {
    const int j = k - (p_ - 1);
    return {.send = whole(at(1), out_slice(at(1 - j))), .receive = whole(at(-1), out_slice(at(-j)))};
  }
  const Block target = out_slice(at(-k - 1));
  return {.send = whole(at(1), out_slice(at(-k))),
          .receive = whole(at(-1), target),
          .combine = true,
          .with = target};
}

// `out` holds the partial sum that passes through. The step that sends it also receives the next.
Step MessageSchedule::ring_reduce_scatter(int k) const {
  const Block out = local_target();
  return {.send = whole(at(1), k == 0 ? source_chunk(at(-1)) : out),
          .receive = whole(at(-1), out),
          .combine = true,
          .with = source_chunk(at(-2 - k))};
}

Step MessageSchedule::ring_all_gather(int k) const {
  const Blocks parts = parts_of_all(args_, p_, args_.out);
  return {.send = whole(at(1), parts.of(at(-k))), .receive = whole(at(-1), parts.of(at(-k - 1)))};
}

Step MessageSchedule::pairwise_reduce(int k) const {
  const int round = k / (p_ - 1), j = k % (p_ - 1);
  if (round == pairwise_rounds()) {  // the sums of an all-reduce go once round
    return {.send = whole(at(1), out_slice(at(-j))), .receive = whole(at(-1), out_slice(at(-j - 1)))};
  }
  const int from = at(-1 - j);
  const std::int64_t offset = round * slot_bytes_;
  const std::int64_t incoming = std::clamp<std::int64_t>(own_source().bytes() - offset, 0, slot_bytes_);
  return {.send = part(at(1 + j), source_chunk(at(1 + j)), offset, slot_bytes_),
          .receive = whole(from, contiguous_block(slot_of(from), incoming)),
          .reduce_all = j == p_ - 2};
}

// See halving_doubling_all_reduce in cost.cc for numbers of ranks that are no powers of two.
Step MessageSchedule::halving_doubling(int k) const {
  const int q = static_cast<int>(std::bit_floor(static_cast<unsigned>(p_))), r = p_ - q, last = steps_ - 1;
  const Block all = out_slices(q, 0, q);
  const bool folded = me_ < 2 * r;
  if (r > 0 && (k == 0 || k == last)) {
    if (!folded) return {};
    const bool hands_over = me_ % 2 == 1;
    const int partner = hands_over ? me_ - 1 : me_ + 1;
    if (hands_over == (k == 0)) return {.send = whole(partner, all)};
    return {.receive = whole(partner, all), .combine = k == 0, .with = all};
  }
  if (folded && me_ % 2 == 1) return {};
  const int v = folded ? me_ / 2 : me_ - r, depth = log2_ceil(q), j = k - (r > 0 ? 1 : 0);
  const bool halving = j < depth;
  const int d = halving ? q >> (j + 1) : 1 << (j - depth);
  const int w = v ^ d, partner = w < r ? 2 * w : w + r;
  const Block mine = out_slices(q, v / d * d, v / d * d + d),
              theirs = out_slices(q, w / d * d, w / d * d + d);
  if (halving)
    return {.send = whole(partner, theirs), .receive = whole(partner, mine), .combine = true, .with = mine};
  return {.send = whole(partner, mine), .receive = whole(partner, theirs)};
}

Step MessageSchedule::pairwise_all_to_all(int k) const {
  const int to = at(1 + k), from = at(-1 - k);
  if (args_.kind == Collective::kAllToAllV) {
    return {.send = whole(to, v_block(true, to)), .receive = whole(from, v_block(false, from))};
  }
  return {.send = whole(to, all_to_all_sources(args_, p_, args_.in).of(to)),
          .receive = whole(from, all_to_all_targets(args_, p_, args_.out).of(from))};
}

Step MessageSchedule::shift() const {
  const std::int64_t bytes = args_.outer * args_.inner * element();
  return {.send = whole(at(1), contiguous_block(args_.in, bytes)),
          .receive = whole(at(-1), contiguous_block(args_.out, bytes))};
}

// In the tree rooted at 0, rank v hears at its lowest bit, then tells v + d for all lower d, the far ones
// first.
Step MessageSchedule::binomial(int k) const {
  const int v = (me_ - args_.peer + p_) % p_, d = 1 << (steps_ - 1 - k);
  const Block out = local_target();
  auto rank = [&](int u) { return (u + args_.peer) % p_; };
  if (v % (2 * d) == d) return {.receive = whole(rank(v - d), out)};
  if (v % (2 * d) == 0 && v + d < p_) return {.send = whole(rank(v + d), out)};
  return {};
}

Step MessageSchedule::dissemination(int k) const {
  return {.send = {.peer = at(1 << k)}, .receive = {.peer = at(-(1 << k))}, .signal = true};
}

}  // namespace hyperrun

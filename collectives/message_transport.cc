#include "collectives/message_transport.h"

#include <algorithm>
#include <utility>

#include "collectives/checksum.h"
#include "collectives/reduce.h"
#include "runtime/base/error.h"

namespace hyperrun {
namespace {

constexpr std::int64_t kAlign = 64;
constexpr std::int64_t kSumBytes = sizeof(std::uint64_t);

}  // namespace

// Half of the staging packs and unpacks pieces; the other half holds one piece of every peer.
MessageTransport::MessageTransport(MessagePort& port, std::vector<int> ranks, int me, int tag,
                                   std::span<std::byte> staging, bool checksums)
    : port_(port),
      ranks_(std::move(ranks)),
      me_(me),
      tag_(tag),
      checksums_(checksums),
      sources_(ranks_.size()) {
  const auto half = static_cast<std::int64_t>(staging.size()) / 2;
  const auto peers = std::max<std::int64_t>(static_cast<std::int64_t>(ranks_.size()) - 1, 1);
  piece_ = half / (std::int64_t{2} * kWindow) / kAlign * kAlign;
  slot_bytes_ = half / peers / kAlign * kAlign;
  HR_CHECK(piece_ > 0 && slot_bytes_ > 0, "staging is too small");
  for (std::size_t i = 0; i < kWindow; ++i) {
    out_.staging[i] = staging.data() + static_cast<std::int64_t>(i) * piece_;
    in_.staging[i] = staging.data() + static_cast<std::int64_t>(i + kWindow) * piece_;
  }
  slots_ = staging.data() + half;
}

void MessageTransport::begin(Algorithm algorithm, const CollectiveArgs& args) {
  args_ = args;
  schedule_ = MessageSchedule(algorithm, args, static_cast<int>(ranks_.size()), me_, slots_, slot_bytes_);
  next_step_ = 0;
  loaded_ = false;
  sent_ = 0;
  const Block source = schedule_.local_source();
  if (source.bytes() > 0) copy(schedule_.local_target(), source);
}

bool MessageTransport::advance() {
  for (; next_step_ < schedule_.steps(); ++next_step_) {
    if (!loaded_) load_step();
    advance_sends();
    advance_receives();
    if (out_.done < out_.pieces || in_.done < in_.pieces) return false;
    if (step_.reduce_all) reduce_all();
    loaded_ = false;
  }
  return true;
}

void MessageTransport::load_step() {
  step_ = schedule_.step(next_step_);
  for (Direction* d : {&out_, &in_}) d->posted = d->done = 0;
  out_.pieces = pieces_of(step_.send);
  in_.pieces = pieces_of(step_.receive);
  loaded_ = true;
}

int MessageTransport::pieces_of(const Transfer& t) const {
  if (t.peer < 0) return 0;
  return step_.signal ? 1 : static_cast<int>((t.bytes + piece_ - 1) / piece_);
}

std::int64_t MessageTransport::piece_bytes(const Transfer& t, int piece) const {
  return std::min(piece_, t.bytes - piece * piece_);
}

bool MessageTransport::in_place(const Transfer& t) const { return t.block.contiguous(); }

void MessageTransport::post_send() {
  const Transfer& t = step_.send;
  const auto slot = static_cast<std::size_t>(out_.posted % kWindow);
  const std::int64_t offset = t.offset + out_.posted * piece_, bytes = piece_bytes(t, out_.posted);
  const std::byte* data = t.block.base + offset;
  if (!in_place(t)) {
    pack(out_.staging[slot], t.block, offset, bytes);
    data = out_.staging[slot];
  }
  const int to = ranks_[static_cast<std::size_t>(t.peer)];
  out_.tickets[slot] = port_.send(data, bytes, to, tag_);
  if (has_sum(bytes)) {
    out_.sums[slot] = checksum(data, bytes);
    out_.sum_tickets[slot] =
        port_.send(reinterpret_cast<const std::byte*>(&out_.sums[slot]), kSumBytes, to, tag_);
  }
  out_.arrived[slot] = out_.sum_arrived[slot] = false;
  ++out_.posted;
  sent_ += bytes;
}

void MessageTransport::post_receive() {
  const Transfer& t = step_.receive;
  const auto slot = static_cast<std::size_t>(in_.posted % kWindow);
  const std::int64_t bytes = piece_bytes(t, in_.posted);
  const int from = ranks_[static_cast<std::size_t>(t.peer)];
  in_.tickets[slot] = port_.receive(landing(in_.posted), bytes, from, tag_);
  if (has_sum(bytes))
    in_.sum_tickets[slot] =
        port_.receive(reinterpret_cast<std::byte*>(&in_.sums[slot]), kSumBytes, from, tag_);
  in_.arrived[slot] = in_.sum_arrived[slot] = false;
  ++in_.posted;
}

// The place that a piece is received at.
std::byte* MessageTransport::landing(int piece) const {
  const Transfer& t = step_.receive;
  if (in_place(t) && !step_.combine) return t.block.base + t.offset + piece * piece_;
  return in_.staging[static_cast<std::size_t>(piece % kWindow)];
}

// True once the oldest piece of a direction is through, and its checksum.
bool MessageTransport::complete(Direction& d, std::int64_t bytes) {
  const auto slot = static_cast<std::size_t>(d.done % kWindow);
  if (!d.arrived[slot]) d.arrived[slot] = port_.test(d.tickets[slot]);
  if (!has_sum(bytes)) return d.arrived[slot];
  if (!d.sum_arrived[slot]) d.sum_arrived[slot] = port_.test(d.sum_tickets[slot]);
  return d.arrived[slot] && d.sum_arrived[slot];
}

void MessageTransport::check(int piece) const {
  const Transfer& t = step_.receive;
  const std::int64_t bytes = piece_bytes(t, piece);
  if (!has_sum(bytes)) return;
  const auto rank = [&](int member) { return ranks_[static_cast<std::size_t>(member)]; };
  require_equal(in_.sums[static_cast<std::size_t>(piece % kWindow)], checksum(landing(piece), bytes),
                {args_.kind, rank(t.peer), rank(me_), bytes});
}

void MessageTransport::advance_sends() {
  while (out_.done < out_.pieces) {
    while (out_.posted < out_.pieces && out_.posted - out_.done < kWindow) post_send();
    if (!complete(out_, piece_bytes(step_.send, out_.done))) return;
    ++out_.done;
  }
}

void MessageTransport::advance_receives() {
  while (in_.done < in_.pieces) {
    while (in_.posted < in_.pieces && in_.posted - in_.done < kWindow) post_receive();
    if (!complete(in_, piece_bytes(step_.receive, in_.done))) return;
    // A partial sum must not take the place of the piece with the same number while that is still being sent.
    if (step_.combine && out_.done <= in_.done && out_.done < out_.pieces) return;
    check(in_.done);
    accept(in_.done);
    ++in_.done;
  }
}

void MessageTransport::accept(int piece) {
  const Transfer& t = step_.receive;
  const std::byte* received = in_.staging[static_cast<std::size_t>(piece % kWindow)];
  const std::int64_t offset = t.offset + piece * piece_, bytes = piece_bytes(t, piece);
  if (step_.combine) {
    combine(offset, received, bytes);
  } else if (!in_place(t)) {
    unpack(t.block, offset, received, bytes);
  }
}

void MessageTransport::combine(std::int64_t offset, const std::byte* received, std::int64_t bytes) {
  BlockCursor target(step_.receive.block, offset), with(step_.with, offset);
  for (std::int64_t done = 0; done < bytes;) {
    const std::int64_t n = std::min({target.left(), with.left(), bytes - done});
    const std::array<const std::byte*, 2> sources{with.data(), received + done};
    const std::array<std::byte*, 1> targets{target.data()};
    reduce(args_.dtype, args_.op, sources, targets, n / size_of(args_.dtype));
    target.advance(n);
    with.advance(n);
    done += n;
  }
}

void MessageTransport::reduce_all() {
  const Block own = schedule_.own_source(), result = schedule_.reduced();
  const std::int64_t offset = next_step_ / (static_cast<int>(ranks_.size()) - 1) * slot_bytes_;
  const std::int64_t bytes = std::clamp<std::int64_t>(result.bytes() - offset, 0, slot_bytes_);
  BlockCursor from(own, bytes > 0 ? offset : 0), target(result, bytes > 0 ? offset : 0);
  for (std::int64_t done = 0; done < bytes;) {
    const std::int64_t n = std::min({from.left(), target.left(), bytes - done});
    for (std::size_t r = 0; r < ranks_.size(); ++r) {
      const int peer = static_cast<int>(r);
      sources_[r] = peer == me_ ? from.data() : schedule_.slot_of(peer) + done;
    }
    const std::array<std::byte*, 1> targets{target.data()};
    reduce(args_.dtype, args_.op, sources_, targets, n / size_of(args_.dtype));
    from.advance(n);
    target.advance(n);
    done += n;
  }
}

}  // namespace hyperrun

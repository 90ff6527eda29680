#include "collectives/group.h"

#include <algorithm>
#include <map>
#include <span>
#include <string>
#include <utility>

#include "collectives/checksum.h"
#include "runtime/base/error.h"

namespace hyperrun {
namespace {

bool is_point_to_point(Collective kind) { return kind == Collective::kSend || kind == Collective::kRecv; }

bool is_shared(Algorithm a) {
  return a == Algorithm::kOneShot || a == Algorithm::kDirect || a == Algorithm::kHierarchical;
}

// Groups the members by host: hosts in order of appearance, members in the order of the group.
std::vector<std::vector<int>> by_host(const std::vector<int>& ranks, const Topology& topology) {
  std::map<int, std::size_t> number;
  std::vector<std::vector<int>> hosts;
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    const int host = topology.host_of[static_cast<std::size_t>(ranks[i])];
    const auto [at, is_new] = number.try_emplace(host, hosts.size());
    if (is_new) hosts.emplace_back();
    hosts[at->second].push_back(static_cast<int>(i));
  }
  return hosts;
}

int position(const std::vector<int>& list, int value) {
  const auto at = std::find(list.begin(), list.end(), value);
  return at == list.end() ? -1 : static_cast<int>(at - list.begin());
}

}  // namespace

Group::Group(World& world, int key, std::vector<int> ranks)
    : world_(world), key_(key), ranks_(std::move(ranks)) {
  HR_CHECK(key >= 0 && key < world.options_.max_keys, "group key " + std::to_string(key));
  for (const int r : ranks_) HR_CHECK(r >= 0 && r < world.size(), "no rank " + std::to_string(r));
  place_.index = position(ranks_, world.rank());
  HR_CHECK(place_.index >= 0, "a rank makes only the groups that it is in");
  place_.shape = shape_of(ranks_, world.topology());
  sends_.resize(ranks_.size());
  receives_.resize(ranks_.size());
  make_transports();
}

void Group::make_transports() {
  Transport& t = world_.transport_;
  const auto hosts = by_host(ranks_, t.topology);
  const std::vector<int> on_host = t.topology.peers(world_.rank());
  const int my_local = position(on_host, world_.rank());
  own_channels_.resize(ranks_.size());
  peer_channels_.resize(ranks_.size());
  own_sums_.resize(ranks_.size());
  peer_sums_.resize(ranks_.size());
  for (std::size_t h = 0; h < hosts.size(); ++h) {
    const int local = position(hosts[h], place_.index);
    if (local < 0) continue;
    place_.host_index = static_cast<int>(h);
    place_.local_index = local;
    std::vector<LocalMember> members;
    for (const int i : hosts[h]) {
      const int rank = ranks_[static_cast<std::size_t>(i)];
      const auto slot = static_cast<int>(std::ranges::lower_bound(on_host, rank) - on_host.begin());
      ControlBlock& block = t.blocks[static_cast<std::size_t>(slot)];
      const ControlBlock& own = t.blocks[static_cast<std::size_t>(my_local)];
      const auto member = static_cast<std::size_t>(i);
      own_channels_[member] = &own.channel(key_, slot);
      peer_channels_[member] = &block.channel(key_, my_local);
      if (world_.options_.checksums) {
        own_sums_[member] = &own.sums(key_, slot);
        peer_sums_[member] = &block.sums(key_, my_local);
      }
      members.push_back({i, t.arena->peer_base(rank), &block.cell(key_),
                         t.bells[static_cast<std::size_t>(slot)], rank, own_sums_[member],
                         peer_sums_[member]});
    }
    shared_ = std::make_unique<SharedMemoryTransport>(std::move(members), local, size());
  }
  if (hosts.size() == 1) return;
  HR_CHECK(t.port != nullptr, "a group that spans hosts needs messages");
  const Bytes bytes = world_.options_.staging;
  staging_ = map_memory(bytes);
  const std::span<std::byte> staging(staging_.get(), static_cast<std::size_t>(bytes.value));
  message_transport_ = std::make_unique<MessageTransport>(*t.port, ranks_, place_.index, 2 * key_, staging,
                                                          world_.options_.checksums);
  if (place_.shape.per_host < 2) return;
  std::vector<int> column;
  column.reserve(hosts.size());
  for (const auto& host : hosts) {
    column.push_back(ranks_[static_cast<std::size_t>(host[static_cast<std::size_t>(place_.local_index)])]);
  }
  column_transport_ = std::make_unique<MessageTransport>(*t.port, std::move(column), place_.host_index,
                                                         2 * key_, staging, world_.options_.checksums);
}

// Checks for bugs of the caller, which a peer would otherwise read as data.
void Group::check(const CollectiveArgs& args) const {
  const Arena& arena = *world_.transport_.arena;
  const int p = size();
  const std::int64_t element = size_of(args.dtype);
  HR_CHECK(args.outer >= 0 && args.inner >= 0 && args.peer >= 0 && args.peer < p,
           std::string(name(args.kind)));
  if (args.kind == Collective::kAllToAllV) {
    HR_CHECK(static_cast<int>(args.send_counts.size()) == p &&
             static_cast<int>(args.recv_counts.size()) == p);
    HR_CHECK(args.send_starts.size() == args.recv_starts.size() &&
             (args.send_starts.empty() || static_cast<int>(args.send_starts.size()) == p));
  }
  if (args.kind == Collective::kAllToAll) {
    HR_CHECK(args.all_to_all.x % p == 0 && args.all_to_all.y % p == 0, "all-to-all does not divide");
  }
  const bool reads = args.kind != Collective::kBroadcast || place_.index == args.peer;
  const Bytes in(reads ? in_extent(args, p) * element : 0), out(out_extent(args, p) * element);
  HR_CHECK(in.value == 0 || arena.contains(args.in, in), "in lies outside the arena");
  HR_CHECK(out.value == 0 || arena.contains(args.out, out), "out lies outside the arena");
}

Request& Group::take(Ring& ring) {
  if (ring.requests.empty()) {
    ring.requests.resize(kMostOutstanding);
    for (Request& r : ring.requests) r.group = this;
  }
  Request& r = ring.at(ring.issued);
  if (!r.done()) world_.wait(r);
  ++ring.issued;
  return r;
}

Request* Group::start(const CollectiveArgs& args) {
  check(args);
  const bool pair = is_point_to_point(args.kind);
  Request& r = take(pair ? messages_ : collectives_);
  r.args = args;
  r.wire_bytes = 0;
  r.cursor = 0;
  r.stage = Stage::kQueued;
  if (args.kind == Collective::kAllToAllV) {
    r.counts.assign(args.send_counts.begin(), args.send_counts.end());
    for (const auto& list : {args.recv_counts, args.send_starts, args.recv_starts})
      r.counts.insert(r.counts.end(), list.begin(), list.end());
    const std::span<const std::int64_t> counts = r.counts;
    const std::size_t p = ranks_.size();
    r.args.send_counts = counts.first(p);
    r.args.recv_counts = counts.subspan(p, p);
    if (!args.send_starts.empty()) {
      r.args.send_starts = counts.subspan(2 * p, p);
      r.args.recv_starts = counts.subspan(3 * p, p);
    }
  }
  if (pair) {
    start_point_to_point(r);
    return &r;
  }
  r.algorithm = select(r.args, place_.shape);
  if (is_shared(r.algorithm)) r.number = ++shared_issued_;
  offer_queued();
  return &r;
}

// Makes offers in order, as far ahead of the running collective as there are slots.
void Group::offer_queued() {
  for (; offered_ < collectives_.issued; ++offered_) {
    Request& r = collectives_.at(offered_);
    if (is_shared(r.algorithm) && !shared_->offer(r.number, r.args, r.algorithm)) return;
    r.stage = Stage::kOffered;
  }
}

bool Group::advance() {
  while (collectives_.completed < collectives_.issued) {
    if (offered_ < collectives_.issued) offer_queued();
    Request& r = collectives_.at(collectives_.completed);
    if (r.stage == Stage::kQueued || !run(r)) break;
    ++collectives_.completed;
  }
  for (std::uint64_t n = messages_.completed; n < messages_.issued; ++n) {
    Request& r = messages_.at(n);
    if ((r.done() || run_point_to_point(r)) && n == messages_.completed) ++messages_.completed;
  }
  return collectives_.completed == collectives_.issued && messages_.completed == messages_.issued;
}

bool Group::by_messages() const {
  return message_transport_ != nullptr &&
         (collectives_.completed < collectives_.issued || messages_.completed < messages_.issued);
}

bool Group::run(Request& r) {
  if (r.algorithm == Algorithm::kHierarchical) return run_hierarchical(r);
  if (is_shared(r.algorithm)) return run_shared(r);
  if (r.stage == Stage::kOffered) {
    message_transport_->begin(r.algorithm, r.args);
    r.stage = Stage::kMessages;
  }
  if (!message_transport_->advance()) return false;
  r.wire_bytes = message_transport_->sent();
  r.stage = Stage::kComplete;
  return true;
}

bool Group::run_shared(Request& r) {
  // Peers read a one-shot input in the control block. It stays valid until the slot comes round.
  const bool private_buffers = r.algorithm == Algorithm::kOneShot || r.args.kind == Collective::kBarrier;
  if (r.stage == Stage::kOffered) {
    if (!shared_->take(r.number, r.args, r.algorithm, r.cursor, r.wire_bytes)) return false;
    shared_->retire(r.number, !private_buffers);
    r.stage = Stage::kDrain;
  }
  if (!private_buffers && !shared_->drained(r.number)) return false;
  shared_->check_results(r.number, r.args, r.algorithm);
  r.stage = Stage::kComplete;
  return true;
}

bool Group::run_hierarchical(Request& r) {
  if (r.stage == Stage::kOffered) {
    if (!shared_->take(r.number, r.args, r.algorithm, r.cursor, r.wire_bytes)) return false;
    const std::int64_t element = size_of(r.args.dtype);
    const Slice mine = slice(elements(r.args, size()), shared_->size(), shared_->me());
    CollectiveArgs between = r.args;
    between.in = between.out = r.args.out + mine.begin * element;
    between.outer = 1;
    between.inner = mine.size();
    column_transport_->begin(
        select_message_all_reduce(r.args.dtype, r.args.op, mine.size() * element, place_.shape.hosts),
        between);
    r.stage = Stage::kMessages;
  }
  if (r.stage == Stage::kMessages) {
    if (!column_transport_->advance()) return false;
    r.wire_bytes += column_transport_->sent();
    shared_->spread(r.number, r.args, r.wire_bytes);
    shared_->retire(r.number);
    r.stage = Stage::kDrain;
  }
  if (!shared_->drained(r.number)) return false;
  shared_->check_results(r.number, r.args, r.algorithm);
  r.stage = Stage::kComplete;
  return true;
}

void Group::start_point_to_point(Request& r) {
  const auto peer = static_cast<std::size_t>(r.args.peer);
  HR_CHECK(r.args.peer != place_.index, "a rank sends to others");
  const bool sends = r.args.kind == Collective::kSend;
  r.number = ++(sends ? sends_ : receives_)[peer];
  r.stage = Stage::kOffered;
  if (own_channels_[peer] != nullptr) {
    r.algorithm = Algorithm::kDirect;
    run_point_to_point(r);
    return;
  }
  r.algorithm = Algorithm::kPairwise;
  const std::int64_t bytes = elements(r.args, size()) * size_of(r.args.dtype);
  MessagePort& port = *world_.transport_.port;
  const int tag = 2 * key_ + 1;
  r.ticket = sends ? port.send(r.args.in, bytes, ranks_[peer], tag)
                   : port.receive(r.args.out, bytes, ranks_[peer], tag);
  if (sends) r.wire_bytes = bytes;
  if (!world_.options_.checksums) return;
  if (sends) r.sum = checksum(r.args.in, bytes);
  auto* sum = reinterpret_cast<std::byte*>(&r.sum);
  r.sum_ticket = sends ? port.send(sum, sizeof r.sum, ranks_[peer], tag)
                       : port.receive(sum, sizeof r.sum, ranks_[peer], tag);
}

bool Group::run_message(Request& r) {
  MessagePort& port = *world_.transport_.port;
  for (MessagePort::Ticket* ticket : {&r.ticket, &r.sum_ticket}) {
    if (*ticket < 0) continue;
    if (!port.test(*ticket)) return false;
    *ticket = -1;
  }
  if (world_.options_.checksums && r.args.kind == Collective::kRecv) check_received(r, r.sum);
  r.stage = Stage::kComplete;
  return true;
}

void Group::check_received(const Request& r, std::uint64_t sent) const {
  const std::int64_t bytes = elements(r.args, size()) * size_of(r.args.dtype);
  require_equal(sent, checksum(r.args.out, bytes),
                {r.args.kind, ranks_[static_cast<std::size_t>(r.args.peer)], world_.rank(), bytes});
}

// The sender publishes the data's offset; the receiver fetches the data and says so.
bool Group::run_point_to_point(Request& r) {
  const auto peer = static_cast<std::size_t>(r.args.peer);
  if (r.algorithm == Algorithm::kPairwise) return run_message(r);
  Channel& mine = *own_channels_[peer];
  Channel& theirs = *peer_channels_[peer];
  const auto slot = static_cast<std::size_t>(r.number % kSlots);
  if (r.args.kind == Collective::kSend) {
    const std::uint64_t received = theirs.received.load(std::memory_order_acquire);
    const bool in_turn = mine.sent.load(std::memory_order_relaxed) + 1 == r.number;
    if (r.stage == Stage::kOffered && in_turn && received + kSlots >= r.number) {
      mine.offset[slot] = world_.transport_.arena->offset_of(r.args.in).value;
      if (own_sums_[peer] != nullptr)
        own_sums_[peer]->message[slot] =
            checksum(r.args.in, elements(r.args, size()) * size_of(r.args.dtype));
      mine.sent.store(r.number, std::memory_order_release);
      shared_->ring_bell(r.args.peer);
      r.stage = Stage::kDrain;
    }
    if (received < r.number) return false;
    r.stage = Stage::kComplete;
    return true;
  }
  const bool in_turn = mine.received.load(std::memory_order_relaxed) + 1 == r.number;
  if (!in_turn || theirs.sent.load(std::memory_order_acquire) < r.number) return false;
  const std::int64_t bytes = elements(r.args, size()) * size_of(r.args.dtype);
  const std::byte* from = world_.transport_.arena->peer_base(ranks_[peer]) + theirs.offset[slot];
  copy(contiguous_block(r.args.out, bytes), contiguous_block(from, bytes));
  if (peer_sums_[peer] != nullptr) check_received(r, peer_sums_[peer]->message[slot]);
  r.wire_bytes = bytes;
  mine.received.store(r.number, std::memory_order_release);
  shared_->ring_bell(r.args.peer);
  r.stage = Stage::kComplete;
  return true;
}

}  // namespace hyperrun

// A group of ranks, and its requests under way. See world.h for the contract.
#pragma once

#include <memory>
#include <vector>

#include "collectives/cost.h"
#include "collectives/message_transport.h"
#include "collectives/shared_memory_transport.h"
#include "collectives/types.h"
#include "collectives/world.h"

namespace hyperrun {

enum class Stage : std::uint8_t {
  kQueued,    // the rank has not offered it to the peers
  kOffered,   // the rank waits for the peers' inputs and takes them
  kMessages,  // the rank exchanges messages
  kDrain,     // the rank waits until no peer touches its buffers any more
  kComplete,
};

// Limit of collectives of a group under way, and of messages. It is a power of two, so that the ring is
// indexed without a division.
inline constexpr std::size_t kMostOutstanding = 64;

struct Request {
  bool done() const { return stage == Stage::kComplete; }

  CollectiveArgs args;
  Group* group = nullptr;
  Algorithm algorithm{};
  Stage stage = Stage::kComplete;
  std::int64_t wire_bytes = 0;  // bytes that this rank moved, final once done; equals wire_bytes() of cost.h
  std::uint64_t number = 0;  // number among the collectives in shared memory, or among a channel's messages
  int cursor = 0;            // count of members dealt with in this stage
  MessagePort::Ticket ticket = -1;
  MessagePort::Ticket sum_ticket = -1;  // of a message's checksum, if it has one
  std::uint64_t sum = 0;
  std::vector<std::int64_t> counts;  // for kAllToAllV: send counts, receive counts, then their starts, if any
};

class Group {
 public:
  Group(World& world, int key, std::vector<int> ranks);

  int key() const { return key_; }
  int index() const { return place_.index; }  // of this rank in the group
  int size() const { return static_cast<int>(ranks_.size()); }
  const std::vector<int>& ranks() const { return ranks_; }
  const Place& place() const { return place_; }

  // Starts a collective. The request belongs to the group and is valid until kMostOutstanding further starts.
  // Waits only when that many are under way.
  Request* start(const CollectiveArgs& args);

  bool advance();            // one pass over all requests; true if none is left
  bool by_messages() const;  // true if a request waits for messages, which ring no bell

 private:
  struct Ring {
    std::vector<Request> requests;            // kMostOutstanding of them from the first one on
    std::uint64_t issued = 0, completed = 0;  // all requests before `completed` are complete
    Request& at(std::uint64_t n) { return requests[n % kMostOutstanding]; }
  };

  void check(const CollectiveArgs& args) const;
  void make_transports();
  Request& take(Ring& ring);
  void offer_queued();
  bool run(Request& r);
  bool run_shared(Request& r);
  bool run_hierarchical(Request& r);
  void start_point_to_point(Request& r);
  bool run_point_to_point(Request& r);
  bool run_message(Request& r);
  void check_received(const Request& r, std::uint64_t sent) const;

  World& world_;
  int key_;
  std::vector<int> ranks_;
  Place place_;
  Ring collectives_, messages_;
  std::uint64_t offered_ = 0;  // count of `collectives_` offered
  std::uint64_t shared_issued_ = 0;
  std::unique_ptr<SharedMemoryTransport> shared_;
  std::shared_ptr<std::byte> staging_;  // takes pages as messages touch it; null within one host
  std::unique_ptr<MessageTransport> message_transport_;  // between all members
  std::unique_ptr<MessageTransport>
      column_transport_;                          // between the members with this local index on each host
  std::vector<Checksums*> own_sums_, peer_sums_;  // with checksums, like the channels
  std::vector<Channel*> own_channels_, peer_channels_;  // by index in the group; null on other hosts
  std::vector<std::uint64_t> sends_, receives_;         // counts of those started, by index in the group
};

}  // namespace hyperrun

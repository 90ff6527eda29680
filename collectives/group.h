// A group of ranks, and the requests that it has under way. See world.h for the contract.
#pragma once

#include <memory>
#include <vector>

#include "collectives/cost.h"
#include "collectives/message_lane.h"
#include "collectives/shared_lane.h"
#include "collectives/types.h"
#include "collectives/world.h"

namespace hyperrun {

enum class Stage : std::uint8_t {
  kQueued,    // not yet offered to the peers
  kOffered,   // waits for the peers' inputs, takes them
  kMessages,  // exchanges messages
  kDrain,     // waits until no peer touches this rank's buffers any more
  kComplete,
};

// Collectives of a group that may be under way, and as many messages. A power of two: their ring is indexed
// without a division.
inline constexpr std::size_t kMostOutstanding = 256;

struct Request {
  bool done() const { return stage == Stage::kComplete; }

  CollectiveArgs args;
  Group* group = nullptr;
  Algorithm algorithm{};
  Stage stage = Stage::kComplete;
  std::int64_t wire_bytes = 0;  // that this rank moved, final once done; equals wire_bytes() of cost.h
  std::uint64_t number = 0;     // of the collectives in shared memory, or of a channel's messages
  int cursor = 0;               // members dealt with in this stage
  MessagePort::Ticket ticket = -1;
  std::vector<std::int64_t> counts;  // of kAllToAllV, send then receive; then their starts, if there are any
};

class Group {
 public:
  Group(World& world, int key, std::vector<int> ranks);

  int key() const { return key_; }
  int index() const { return place_.index; }  // of this rank in the group
  int size() const { return static_cast<int>(ranks_.size()); }
  const std::vector<int>& ranks() const { return ranks_; }
  const Place& place() const { return place_; }

  // The request belongs to the group and is valid until kMostOutstanding further starts. Waits only when
  // that many are under way.
  Request* start(const CollectiveArgs& args);

  bool advance();            // one pass over all requests; true if none is left
  bool by_messages() const;  // whether anything under way waits for messages, which ring no bell

 private:
  struct Ring {
    std::vector<Request> requests = std::vector<Request>(kMostOutstanding);
    std::uint64_t issued = 0, completed = 0;  // completed: all before are
    Request& at(std::uint64_t n) { return requests[n % kMostOutstanding]; }
  };

  void check(const CollectiveArgs& args) const;
  void make_lanes();
  Request& take(Ring& ring);
  void offer_queued();
  bool run(Request& r);
  bool run_shared(Request& r);
  bool run_hierarchical(Request& r);
  void start_point_to_point(Request& r);
  bool run_point_to_point(Request& r);

  World& world_;
  int key_;
  std::vector<int> ranks_;
  Place place_;
  Ring collectives_, messages_;
  std::uint64_t offered_ = 0;  // of collectives_
  std::uint64_t shared_issued_ = 0;
  std::unique_ptr<SharedLane> shared_;
  std::vector<std::byte> staging_;
  std::unique_ptr<MessageLane> lane_;                   // all members
  std::unique_ptr<MessageLane> column_;                 // the members with this local index on each host
  std::vector<Channel*> own_channels_, peer_channels_;  // by index in the group; null on other hosts
  std::vector<std::uint64_t> sends_, receives_;         // started, by index in the group
};

}  // namespace hyperrun

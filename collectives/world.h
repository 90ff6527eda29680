// Groups of ranks and the collectives that they run.
//
// A World is one rank's view of all ranks over one transport: memory shared by the processes of a host,
// memory shared by threads (tests), messages between hosts, or a mixture. A Group is an ordered list of
// ranks, made at set-up. start() begins a collective and returns at once; progress() moves it on without
// blocking; wait() returns when it is complete. Nothing is allocated from start to completion, and no
// group needs communication to be made.
//
//   Group& tp = world->make_group(/*key=*/0, {0, 1});
//   Request* r = tp.start({.kind = Collective::kAllReduce, .in = g, .out = g, .inner = n});
//   ... compute; world->progress() now and then ...
//   world->wait(*r);
//
// Contract
// - Threads: one World is used by one thread at a time (with messages: by the thread that owns MPI).
// - Order: all members start the same collectives on a group in the same order, with the same arguments
//   (buffers may lie at different addresses). Sends and receives are matched in order per pair and
//   direction, independently of the group's collectives. There is no order between groups; wait() moves
//   every outstanding request on, so that any order of waiting completes.
// - Buffers: in must not be written, nor out touched, between start and completion. At completion the
//   result is in out, and in may be overwritten.
// - Results: all members get bitwise equal results, and the same at every run. Within one host, and for
//   bfloat16 on every transport without hierarchy, elements are reduced in the order of the group's
//   ranks, ((x0 + x1) + x2) + ..., in float32, and rounded once.
// - Errors: every wait looks at the cancel flag and throws Error(Code::kDeviceLost) once it is set. After
//   that the World can only be destroyed.
#pragma once

#include <mpi.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "collectives/types.h"
#include "memory/arena.h"
#include "memory/host.h"

namespace hyperrun {

class Group;

// Bytes that this rank moved for a request, as in collectives/cost.h (wire_bytes).
struct Request {
  bool done() const { return state == 0xff; }

  CollectiveArgs args;
  Group* group = nullptr;
  std::uint64_t sequence = 0;      // of the group's collectives, or of the channel's messages
  std::int64_t wire_bytes = 0;     // moved so far; final once done
  std::uint8_t state = 0xff;       // of the state machine; 0xff: complete
  std::int32_t cursor = 0;         // the peer that the state machine waits for
  std::int32_t step = 0;
};

struct WorldOptions {
  const std::atomic<bool>* cancel = nullptr;  // set by someone else when a peer is gone; may be null
  int max_keys = 32;                          // group keys are 0 .. max_keys - 1
  int max_outstanding = 256;                  // requests of a group that may be under way
};

class World {
 public:
  virtual ~World() = default;

  int rank() const;
  int size() const;
  const Topology& topology() const;

  // `ranks` in the order of the group, this rank among them. Groups of one key are disjoint (the groups
  // along a mesh axis, say), and every member passes the same list. The group lives as long as the World.
  Group& make_group(int key, std::vector<int> ranks);

  bool progress();             // one pass over everything outstanding; true if nothing is left
  bool progress(Request& r);   // one pass; true if r is complete
  void wait(Request& r);       // spins briefly, yields, then sleeps
  void wait_all();
};

class Group {
 public:
  int index() const;  // of this rank in the group
  int size() const;
  const std::vector<int>& ranks() const;

  // The request belongs to the group and stays valid for max_outstanding further starts. Blocks only when
  // that many are under way.
  Request* start(const CollectiveArgs& args);
};

}  // namespace hyperrun

// Groups of ranks, and the collectives that they run.
//
// A rank is a device; a process hosts one or several. A World is one rank's view of all ranks over one
// transport: memory shared by the processes of a host, memory of this process, messages between hosts, or a
// mixture. A Group (group.h) is an ordered
// list of ranks, made at set-up. start() begins a collective and returns at once. progress() moves it on
// without waiting. wait() returns when it is complete. Nothing is allocated from start to completion, and no
// group needs communication to be made.
//
//   auto world = make_mpi_world(hosts, arena);
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
//   everything outstanding on, so that any order of waiting completes.
// - Buffers: in must not be written, nor out touched, between start and completion. At completion the
//   result is in out, and in may be overwritten.
// - Results: all members get bitwise equal results, and the same at every run. Within one host, and for
//   kPairwise between hosts (always for bfloat16), elements are reduced in the order of the group's ranks,
//   ((x0 + x1) + x2) + ..., in float32, and rounded once. kHierarchical reduces so within each host, rounds,
//   and then reduces between the hosts.
// - Errors: every wait looks at the cancel flag and throws Error(Code::kDeviceLost) once it is set. With
//   checksums, whatever moves a collective on throws kCorrupt if a message has changed on its way. After
//   either the World can only be destroyed.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "collectives/control.h"
#include "collectives/message_port.h"
#include "collectives/types.h"
#include "memory/arena.h"
#include "memory/host.h"

namespace hyperrun {

class Group;
class MpiHosts;
class RemoteMemory;
struct Request;

// Lets the other ranks run that share a rank's thread.
class ThreadSharer {
 public:
  virtual ~ThreadSharer() = default;
  // Called by a rank that waits, instead of sleeping; returns after the others have had their turn. `again`:
  // the rank has looked since its last call, and what it waits for had not happened.
  virtual void yield(bool again) = 0;
};

struct WorldOptions {
  const std::atomic<bool>* cancel = nullptr;  // another thread sets it when a peer is gone; may be null
  ThreadSharer* sharer = nullptr;             // null: the rank has its thread to itself
  int max_keys = 32;                          // group keys are 0 .. max_keys - 1
  Bytes staging{8 << 20};                     // staging of a group that spans hosts; the same on all ranks
  bool checksums = false;                     // of all messages (checksum.h); the same on all ranks
  std::vector<RemoteMemory*> remotes;         // they are moved on with everything else and outlive the World
};

// The memory and the port of a World. `blocks` are the control blocks of the ranks on this host, ascending.
// `bells` are those that these ranks wait at: ranks of one thread share one. `port` may be null when all
// ranks share this host. `keep_alive` outlives everything else.
struct Transport {
  Topology topology;
  Arena* arena = nullptr;
  std::vector<ControlBlock> blocks;
  std::vector<Bell*> bells;
  std::unique_ptr<MessagePort> port;
  std::shared_ptr<void> keep_alive;
};

class World {
 public:
  World(Transport transport, const WorldOptions& options);
  ~World();
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  int rank() const { return transport_.arena->rank(); }
  int size() const { return transport_.topology.size(); }
  const Topology& topology() const { return transport_.topology; }

  // Makes a group of `ranks` in this order, this rank among them. Groups of one key are disjoint (the groups
  // along a mesh axis, say), and every member passes the same list. The group lives as long as the World.
  Group& make_group(int key, std::vector<int> ranks);

  bool progress();            // moves everything outstanding on; true if nothing is left
  bool progress(Request& r);  // moves r's group on; true if r is complete
  void wait(Request& r);      // spins briefly, yields, then sleeps, until r is complete
  void wait_all();

  // Lets an owner wait for other things besides the world. Sleeps for `nanos` at most, or until a peer or
  // wake() may have changed what `look` sees. Does not sleep if `look`, which is called once, returns true.
  template <class Look>
  void sleep_unless(std::int64_t nanos, Look look) {
    const std::uint32_t seen = hear_rings(bell());
    sleep_until_rung(look() ? 0 : nanos, seen);
  }
  void wake();  // may be called from any thread: the awaited thing has changed
  Bell& bell() const { return *transport_.bells[static_cast<std::size_t>(local_index_)]; }
  // The longest time to sleep at the bell, in nanoseconds: messages ring none.
  std::int64_t longest_sleep() const;
  std::span<RemoteMemory* const> remotes() const { return options_.remotes; }
  void check_cancelled() const;  // throws kDeviceLost if the cancel flag is set

 private:
  friend class Group;

  // `look` moves on the awaited request and returns true if the wait is over. `look_everywhere` moves on all
  // groups.
  template <class Look, class LookEverywhere>
  void wait_until(Look look, LookEverywhere look_everywhere);
  template <class Look, class LookEverywhere>
  void share_thread_until(Look look, LookEverywhere look_everywhere);
  bool awaits_messages() const;
  void sleep_until_rung(std::int64_t nanos, std::uint32_t seen);  // 0: returns at once

  Transport transport_;
  WorldOptions options_;
  std::vector<std::unique_ptr<Group>> groups_;
  int local_index_ = 0;
  bool crowded_ = false;  // this host has more ranks than cores
};

// Makes the Worlds of this process's ranks, collectively. They use MPI from then on if there is more than one
// host. `arenas` (make_shared_arenas) must outlive the Worlds. `options` has an element for each of them.
// Ranks of one sharer wait at one bell.
std::vector<std::unique_ptr<World>> make_mpi_worlds(const MpiHosts& hosts, std::span<Arena> arenas,
                                                    std::span<const WorldOptions> options);

// The same for a process with one rank.
std::unique_ptr<World> make_mpi_world(const MpiHosts& hosts, Arena& arena, const WorldOptions& options = {});

// Makes worlds of ranks of this process: whoever plays rank r uses element r. Ranks on different hosts of the
// topology talk by messages. `arenas` has one for each rank (make_in_process_arenas), and so has `options`,
// or one for all.
std::vector<std::unique_ptr<World>> make_in_process_worlds(std::vector<Arena>& arenas,
                                                           const Topology& topology,
                                                           std::span<const WorldOptions> options);
std::vector<std::unique_ptr<World>> make_in_process_worlds(std::vector<Arena>& arenas,
                                                           const Topology& topology,
                                                           const WorldOptions& options = {});

// For each rank of a process, the place of the one at whose bell it waits: the first one of its sharer.
std::vector<std::size_t> owners_of_bells(std::span<const WorldOptions> options);

}  // namespace hyperrun

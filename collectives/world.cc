#include "collectives/world.h"

#include <sched.h>

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

#include "collectives/group.h"
#include "collectives/loopback_port.h"
#include "memory/remote_memory.h"
#include "runtime/base/error.h"

namespace hyperrun {
namespace {

using Clock = std::chrono::steady_clock;

// A flag that is set within a microsecond is met spinning. After that a yield lets a peer on this core run. A
// long wait (compute elsewhere, a pipeline's bubble) sleeps. With more ranks than cores the peer most likely
// waits for this core, so spinning is all but skipped.
constexpr int kSpins = 32, kSpinsCrowded = 4;
constexpr auto kYielding = std::chrono::microseconds(300);
constexpr std::int64_t kSleepNanos =
    5'000'000;  // a bell ends the sleep early; it bounds the look at the cancel flag
constexpr std::int64_t kPollNanos = 50'000;  // messages ring no bell

void pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

}  // namespace

World::World(Transport transport, const WorldOptions& options)
    : transport_(std::move(transport)), options_(options) {
  const std::vector<int> local = topology().peers(rank());
  HR_CHECK(local.size() == transport_.blocks.size());
  local_index_ = static_cast<int>(std::find(local.begin(), local.end(), rank()) - local.begin());
  crowded_ = local.size() > std::thread::hardware_concurrency();
  for (RemoteMemory* remote : options_.remotes) remote->set_wake([this] { wake(); });
}

World::~World() = default;

Group& World::make_group(int key, std::vector<int> ranks) {
  groups_.push_back(std::make_unique<Group>(*this, key, std::move(ranks)));
  return *groups_.back();
}

bool World::progress() {
  bool idle = true;
  for (RemoteMemory* remote : options_.remotes) idle = remote->progress() && idle;
  for (const auto& g : groups_) idle = g->advance() && idle;
  return idle;
}

bool World::progress(Request& r) {
  if (!r.done()) r.group->advance();
  return r.done();
}

// Transfers are moved on by waiting, however soon the collective is complete.
void World::wait(Request& r) {
  for (RemoteMemory* remote : options_.remotes) remote->progress();
  wait_until([&] { return progress(r); }, [&] { return progress() || r.done(); });
}

void World::wait_all() {
  wait_until([&] { return progress(); }, [&] { return progress(); });
}

template <class Look, class LookEverywhere>
void World::wait_until(Look look, LookEverywhere look_everywhere) {
  if (options_.sharer != nullptr) return share_thread_until(look, look_everywhere);
  const int spins = crowded_ ? kSpinsCrowded : kSpins;
  for (int i = 0; i < spins; ++i) {
    if (look()) return;
    pause();
  }
  const auto until = Clock::now() + kYielding;
  while (Clock::now() < until) {
    if (look_everywhere()) return;
    check_cancelled();
    sched_yield();
  }
  while (!look_everywhere()) {
    bool done = false;
    sleep_unless(kSleepNanos, [&] { return done = look_everywhere(); });
    if (done) return;
    check_cancelled();
  }
}

template <class Look, class LookEverywhere>
void World::share_thread_until(Look look, LookEverywhere look_everywhere) {
  if (look()) return;
  for (bool again = false; !look_everywhere(); again = true) {
    check_cancelled();
    options_.sharer->yield(again);
  }
}

void World::sleep_until_rung(std::int64_t nanos, std::uint32_t seen) {
  if (nanos > 0) sleep_on(bell(), seen, std::min(nanos, longest_sleep()));
  stop_hearing(bell());
}

void World::wake() {
  std::atomic_thread_fence(std::memory_order_seq_cst);
  ring(bell());
}

std::int64_t World::longest_sleep() const {
  const bool awaits_messages =
      !options_.remotes.empty() ||
      std::any_of(groups_.begin(), groups_.end(), [](const auto& g) { return g->by_messages(); });
  return awaits_messages ? kPollNanos : kSleepNanos;
}

void World::check_cancelled() const {
  if (options_.cancel != nullptr && options_.cancel->load(std::memory_order_relaxed)) {
    throw Error(Code::kDeviceLost, "a collective was cancelled: a device of its group is gone");
  }
}

std::vector<std::size_t> owners_of_bells(std::span<const WorldOptions> options) {
  std::vector<std::size_t> owners;
  for (std::size_t r = 0; r < options.size(); ++r) {
    const auto first = std::ranges::find(options, options[r].sharer, &WorldOptions::sharer) - options.begin();
    owners.push_back(options[r].sharer == nullptr ? r : static_cast<std::size_t>(first));
  }
  return owners;
}

std::vector<std::unique_ptr<World>> make_in_process_worlds(std::vector<Arena>& arenas,
                                                           const Topology& topology,
                                                           const WorldOptions& options) {
  return make_in_process_worlds(arenas, topology, std::vector<WorldOptions>(arenas.size(), options));
}

std::vector<std::unique_ptr<World>> make_in_process_worlds(std::vector<Arena>& arenas,
                                                           const Topology& topology,
                                                           std::span<const WorldOptions> options) {
  HR_CHECK(std::ssize(arenas) == topology.size() && arenas.size() == options.size());
  const auto wire = std::make_shared<LoopbackWire>();
  const int keys = options.front().max_keys;
  const std::int64_t stride = (ControlBlock::bytes(keys, topology.size(), options.front().checksums) +
                               static_cast<std::int64_t>(kLine) - 1) /
                              static_cast<std::int64_t>(kLine) * static_cast<std::int64_t>(kLine);
  const std::shared_ptr<std::byte> memory = map_memory(Bytes(stride * std::ssize(arenas)));
  const std::vector<std::size_t> owners = owners_of_bells(options);
  std::vector<std::unique_ptr<World>> worlds;
  for (std::size_t r = 0; r < arenas.size(); ++r) {
    Transport t{.topology = topology, .arena = &arenas[r], .keep_alive = memory};
    const std::vector<int> local = topology.peers(static_cast<int>(r));
    const auto block = [&](std::size_t rank) {
      return ControlBlock(memory.get() + stride * static_cast<std::int64_t>(rank), keys,
                          static_cast<int>(local.size()));
    };
    for (const int peer : local) {
      t.blocks.push_back(block(static_cast<std::size_t>(peer)));
      t.bells.push_back(&block(owners[static_cast<std::size_t>(peer)]).bell());
    }
    t.port = std::make_unique<LoopbackPort>(wire, static_cast<int>(r));
    worlds.push_back(std::make_unique<World>(std::move(t), options[r]));
  }
  return worlds;
}

}  // namespace hyperrun

#include "collectives/control.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <climits>
#include <ctime>

#include "runtime/base/error.h"

namespace hyperrun {
namespace {

static_assert(std::atomic<std::uint64_t>::is_always_lock_free, "shared between processes");
static_assert(sizeof(std::atomic<std::uint32_t>) == sizeof(std::uint32_t), "a futex word");

}  // namespace

std::int64_t ControlBlock::bytes(int keys, int local_ranks, bool checksums) {
  const auto cells = static_cast<std::size_t>(keys), channels = cells * static_cast<std::size_t>(local_ranks);
  const std::size_t each = sizeof(Channel) + (checksums ? sizeof(Checksums) : 0);
  return static_cast<std::int64_t>(sizeof(Bell) + cells * sizeof(Cell) + channels * each);
}

Cell& ControlBlock::cell(int key) const {
  HR_CHECK(key >= 0 && key < keys_);
  return *reinterpret_cast<Cell*>(base_ + sizeof(Bell) + static_cast<std::size_t>(key) * sizeof(Cell));
}

Channel& ControlBlock::channel(int key, int local_peer) const {
  return *reinterpret_cast<Channel*>(first_channel() + index(key, local_peer) * sizeof(Channel));
}

Checksums& ControlBlock::sums(int key, int local_peer) const {
  std::byte* first = first_channel() + channels() * sizeof(Channel);
  return *reinterpret_cast<Checksums*>(first + index(key, local_peer) * sizeof(Checksums));
}

// Pairs with sleep_on: either the ringer sees the sleeper, or the sleeper's last look sees what was
// published before the ring.
void ring(Bell& bell) {
  if (bell.sleepers.load(std::memory_order_seq_cst) == 0) return;
  bell.rings.fetch_add(1, std::memory_order_seq_cst);
  syscall(SYS_futex, &bell.rings, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

std::uint32_t hear_rings(Bell& bell) {
  const std::uint32_t seen = bell.rings.load(std::memory_order_acquire);
  bell.sleepers.store(1, std::memory_order_relaxed);
  std::atomic_thread_fence(std::memory_order_seq_cst);
  return seen;
}

void stop_hearing(Bell& bell) { bell.sleepers.store(0, std::memory_order_relaxed); }

void sleep_on(Bell& bell, std::uint32_t seen, std::int64_t nanos) {
  const timespec timeout{.tv_sec = nanos / 1'000'000'000, .tv_nsec = nanos % 1'000'000'000};
  syscall(SYS_futex, &bell.rings, FUTEX_WAIT, seen, &timeout, nullptr, 0);
}

}  // namespace hyperrun

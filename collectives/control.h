// The control words through which the ranks of a host tell each other what is ready. Each rank has one block
// in memory that all of them address. A rank writes only its own block (and rings its peers' bells).
//
// Collectives of a group are numbered 1, 2, ... The cell of a rank holds its offers and `done`, the last
// collective after which it touches no peer's memory any more. The offer of number s lies in slot s % kSlots.
// Number s + kSlots overwrites it once all members are done with s.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "collectives/selection.h"

namespace hyperrun {

inline constexpr int kSlots = 8;
inline constexpr std::size_t kLine = 64;

// The places of a collective's buffers in the rank's arena. One-shot inputs and tables travel in the cell. A
// tiny input travels in the cache line of `number`, which is written last and which the peers watch.
struct alignas(kLine) Offer {
  std::atomic<std::uint64_t> number{0};  // of the collective
  std::int64_t in = 0;
  std::int64_t out = 0;
  std::array<std::byte, kLine - 24> tiny;
};
static_assert(sizeof(Offer) == kLine);

struct alignas(kLine) Counter {
  std::atomic<std::uint64_t> value{0};
};

struct alignas(kLine) Payload {
  std::array<std::byte, kOneShotBytes> bytes;
};

struct Cell {
  Counter done;
  Counter checked;  // with checksums: the last collective whose results the rank has checked
  std::array<Offer, kSlots> offers;
  std::array<Payload, kSlots> payloads;
};

// A channel carries messages between two ranks on one key. The sender's block holds `sent` and the offsets;
// the receiver's block holds `received`.
struct alignas(kLine) Channel {
  std::atomic<std::uint64_t> sent{0}, received{0};
  std::array<std::int64_t, kSlots> offset{};
};

// The checksums of what a rank gives to one peer, on one key.
struct alignas(kLine) Checksums {
  std::array<std::uint64_t, kSlots> input{};   // of what the peer takes from the rank's input
  std::array<std::uint64_t, kSlots> result{};  // of the slice that the rank has reduced, in the peer's output
  std::array<std::uint64_t, kSlots> message{};  // of a message to the peer
};

struct alignas(kLine) Bell {
  std::atomic<std::uint32_t> rings{0};
  std::atomic<std::uint32_t> sleepers{0};
};

// A rank's block: a bell, a cell for each key, a channel for each key and local peer, and, with checksums, as
// many Checksums structures.
class ControlBlock {
 public:
  ControlBlock(std::byte* base, int keys, int local_ranks)
      : base_(base), keys_(keys), local_ranks_(local_ranks) {}

  // The memory begins as zeros, which is the state before the first collective. So a channel that nobody uses
  // takes no page.
  static std::int64_t bytes(int keys, int local_ranks, bool checksums);

  Bell& bell() const { return *reinterpret_cast<Bell*>(base_); }
  Cell& cell(int key) const;
  Channel& channel(int key, int local_peer) const;
  Checksums& sums(int key, int local_peer) const;  // only with checksums

 private:
  std::size_t channels() const {
    return static_cast<std::size_t>(keys_) * static_cast<std::size_t>(local_ranks_);
  }
  std::size_t index(int key, int local_peer) const {
    return static_cast<std::size_t>(key) * static_cast<std::size_t>(local_ranks_) +
           static_cast<std::size_t>(local_peer);
  }
  std::byte* first_channel() const {
    return base_ + sizeof(Bell) + static_cast<std::size_t>(keys_) * sizeof(Cell);
  }

  std::byte* base_;
  int keys_, local_ranks_;
};

// Wakes the owner of the bell if it sleeps. The caller has published what the owner waits for.
void ring(Bell& bell);

// The owner hears the bell from this call on; returns the rings so far.
std::uint32_t hear_rings(Bell& bell);

// Sleeps until the bell rings or `nanos` have passed; returns at once if it rang since `seen` was read.
void sleep_on(Bell& bell, std::uint32_t seen, std::int64_t nanos);
void stop_hearing(Bell& bell);

}  // namespace hyperrun

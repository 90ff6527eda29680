// Transfers to and from memory on other hosts. Any thread may ask for one. The owner, the thread that owns
// MPI, carries them out in pieces, and serves other ranks meanwhile. Concurrent transfers alternate piece by
// piece, and a rank has only a few pieces in flight. Other users of the link (transfers of other devices,
// messages of collectives) wait at most for those.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <thread>
#include <vector>

#include "memory/one_sided.h"
#include "runtime/base/units.h"

namespace hyperrun {

class RemoteMemory {
 public:
  // `cancel`: set by others when a peer is lost; may be null. The constructing thread is the owner.
  explicit RemoteMemory(std::unique_ptr<OneSidedPort> port, const std::atomic<bool>* cancel = nullptr);

  // Return when the bytes have arrived. Throw kDeviceLost if a peer is lost.
  void read(int rank, Bytes offset, std::span<std::byte> into);
  void write(int rank, Bytes offset, std::span<const std::byte> from);

  // Owner only: writes some of the bytes and reads them back, overwriting them. Throws kMpi if they differ or
  // do not arrive within `limit`.
  void try_out(int rank, Bytes offset, Bytes bytes, std::chrono::seconds limit);
  // Owner only: reads a byte and changes nothing. Throws kMpi like try_out().
  void try_reading(int rank, std::chrono::seconds limit);

  // Owner only: makes progress. Must be called often while any rank may use this rank's memory. Returns true
  // if no transfer of this rank is left.
  bool progress();

  // `wake` is called by threads that ask for a transfer, as the owner may be asleep.
  void set_wake(std::function<void()> wake) { wake_ = std::move(wake); }

  // Makes the calling thread the owner during its lifetime; a null memory is allowed. If an exception unwinds
  // it, all transfers throw from then on, because nobody carries them out any more.
  class Owner {
   public:
    explicit Owner(RemoteMemory* memory);
    ~Owner();
    Owner(const Owner&) = delete;
    Owner& operator=(const Owner&) = delete;

   private:
    RemoteMemory* memory_;
    std::thread::id before_;
    int exceptions_;
  };

  // The same for several memories.
  class Owners {
   public:
    explicit Owners(std::span<RemoteMemory* const> memories) {
      for (RemoteMemory* memory : memories) owners_.emplace_back(memory);
    }

   private:
    std::deque<Owner> owners_;
  };

  static constexpr Bytes kPiece{512 << 10};
  static constexpr int kWindow = 2;  // pieces of one transfer in flight

 private:
  struct Transfer {
    std::byte* data;  // a put does not change it
    Bytes bytes;
    int rank;
    Bytes offset;
    bool put;
    bool finished = false;  // guarded by mutex_
    Bytes begun{}, done{};
    int under_way = 0;
  };
  struct Lane {
    Transfer* of = nullptr;
    Bytes bytes{};
  };

  using Clock = std::chrono::steady_clock;

  void run(Transfer& transfer);
  void wait_as_owner(const Transfer& transfer);
  bool advance();
  void take_asked();
  void finish(Transfer& transfer);
  void begin_piece(int lane);
  void abandon();
  bool cancelled() const { return abandoned_ || (cancel_ != nullptr && *cancel_); }

  std::unique_ptr<OneSidedPort> port_;
  const std::atomic<bool>* cancel_;
  std::function<void()> wake_;
  std::atomic<std::thread::id> owner_;
  Clock::time_point give_up_ = Clock::time_point::max();  // limit of the owner's own waits
  // The owner's. waiting_: transfers with pieces not begun, the next turn first. lanes_: pieces in flight.
  std::vector<Transfer*> waiting_;
  std::array<Lane, OneSidedPort::kLanes> lanes_{};
  int under_way_ = 0;

  // Shared by the threads. The owner polls asks_ and takes the lock only if it is set; otherwise it would
  // hold the lock nearly all the time.
  std::atomic<bool> asks_{false}, abandoned_{false};
  std::mutex mutex_;
  std::condition_variable finished_;
  std::vector<Transfer*> asked_;
};

}  // namespace hyperrun

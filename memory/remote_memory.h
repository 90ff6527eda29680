// Transfers to and from memory on other hosts. Any thread asks; the owner, the thread that owns MPI, moves
// them on, in pieces, and with them what other ranks read and write here. Several transfers take turns piece
// by piece, and no more than a few pieces of a rank are under way: what else uses the link (other devices'
// transfers, messages of collectives) waits behind those at most.
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
  // cancel: set by someone else when a peer is gone; may be null. The thread that makes it is the owner.
  explicit RemoteMemory(std::unique_ptr<OneSidedPort> port, const std::atomic<bool>* cancel = nullptr);

  // Return when the bytes have arrived. Throw kDeviceLost when a peer is gone.
  void read(int rank, Bytes offset, std::span<std::byte> into);
  void write(int rank, Bytes offset, std::span<const std::byte> from);

  // By the owner: whether a few of the bytes that lie there come back as they were written; they are changed.
  // Throws kMpi when they do not, or not within `limit`.
  void try_out(int rank, Bytes offset, Bytes bytes, std::chrono::seconds limit);
  // The same without changing anything: whether something comes back.
  void try_reading(int rank, std::chrono::seconds limit);

  // By the owner, as often as it can while any rank may use the memory of this one; true if nothing is left
  // of what was asked for here.
  bool progress();

  // Called by who asks and is not the owner, who may sleep.
  void set_wake(std::function<void()> wake) { wake_ = std::move(wake); }

  // While it lives, the calling thread is the owner; null: of nothing. Left by an exception, all transfers
  // throw from then on, as nobody moves them on any more.
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

  // Of several.
  class Owners {
   public:
    explicit Owners(std::span<RemoteMemory* const> memories) {
      for (RemoteMemory* memory : memories) owners_.emplace_back(memory);
    }

   private:
    std::deque<Owner> owners_;
  };

  static constexpr Bytes kPiece{512 << 10};
  static constexpr int kWindow = 2;  // pieces of one transfer that are under way

 private:
  struct Transfer {
    std::byte* data;  // not written to by a put
    Bytes bytes;
    int rank;
    Bytes offset;
    bool put;
    bool finished = false;  // under the lock
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
  Clock::time_point give_up_ = Clock::time_point::max();  // the owner, what it waits for
  // The owner's: have pieces that are not begun, the first has its turn; what is under way.
  std::vector<Transfer*> waiting_;
  std::array<Lane, OneSidedPort::kLanes> lanes_{};
  int under_way_ = 0;

  // Between the threads. The owner looks all the time, so it takes the lock only where there is something:
  // who asks would hardly ever get it.
  std::atomic<bool> asks_{false}, abandoned_{false};
  std::mutex mutex_;
  std::condition_variable finished_;
  std::vector<Transfer*> asked_;
};

}  // namespace hyperrun

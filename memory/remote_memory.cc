#include "memory/remote_memory.h"

#include <algorithm>
#include <exception>
#include <string>
#include <utility>

#include "runtime/base/error.h"

namespace hyperrun {
namespace {

constexpr std::size_t kTransfers = 16;  // reserved; two streams and checkpointing ask for fewer at once

Error lost() { return Error(Code::kDeviceLost, "a transfer to or from another host's memory was cancelled"); }

}  // namespace

RemoteMemory::RemoteMemory(std::unique_ptr<OneSidedPort> port, const std::atomic<bool>* cancel)
    : port_(std::move(port)), cancel_(cancel), owner_(std::this_thread::get_id()) {
  waiting_.reserve(kTransfers);
  asked_.reserve(kTransfers);
}

void RemoteMemory::read(int rank, Bytes offset, std::span<std::byte> into) {
  Transfer t{
      .data = into.data(), .bytes = Bytes(std::ssize(into)), .rank = rank, .offset = offset, .put = false};
  run(t);
}

void RemoteMemory::write(int rank, Bytes offset, std::span<const std::byte> from) {
  Transfer t{.data = const_cast<std::byte*>(from.data()),
             .bytes = Bytes(std::ssize(from)),
             .rank = rank,
             .offset = offset,
             .put = true};
  run(t);
}

void RemoteMemory::run(Transfer& transfer) {
  if (transfer.bytes.value == 0) return;
  {
    const std::lock_guard lock(mutex_);
    asked_.push_back(&transfer);
    asks_ = true;
  }
  if (owner_.load() == std::this_thread::get_id()) return wait_as_owner(transfer);
  if (wake_) wake_();
  std::unique_lock lock(mutex_);
  finished_.wait(lock, [&] { return transfer.finished || abandoned_; });
  if (!transfer.finished) throw lost();
}

// After a cancellation no transfer progresses, so the rest of this one is never accessed.
void RemoteMemory::wait_as_owner(const Transfer& transfer) {
  while (!abandoned_) {
    advance();
    if (transfer.finished) return;
    if (cancelled()) break;
    if (Clock::now() > give_up_) {
      abandon();
      throw Error(Code::kMpi, "rank " + std::to_string(transfer.rank) + " does not answer");
    }
    std::this_thread::yield();
  }
  abandon();
  throw lost();
}

void RemoteMemory::abandon() {
  {
    const std::lock_guard lock(mutex_);
    abandoned_ = true;
  }
  finished_.notify_all();
}

void RemoteMemory::try_out(int rank, Bytes offset, Bytes bytes, std::chrono::seconds limit) {
  std::array<std::byte, 64> pattern{}, back{};
  for (std::size_t i = 0; i < pattern.size(); ++i) pattern[i] = static_cast<std::byte>(0x5a + 37 * i);
  const auto n = std::min(pattern.size(), static_cast<std::size_t>(bytes.value));
  give_up_ = Clock::now() + limit;
  write(rank, offset, std::span(pattern).first(n));
  read(rank, offset, std::span(back).first(n));
  give_up_ = Clock::time_point::max();
  if (!std::equal(pattern.begin(), pattern.begin() + static_cast<std::ptrdiff_t>(n), back.begin()))
    throw Error(Code::kMpi, "what is read from rank " + std::to_string(rank) + " is not what was written");
}

void RemoteMemory::try_reading(int rank, std::chrono::seconds limit) {
  std::byte one{};
  give_up_ = Clock::now() + limit;
  read(rank, Bytes(0), {&one, 1});
  give_up_ = Clock::time_point::max();
}

bool RemoteMemory::progress() { return abandoned_ || advance(); }

bool RemoteMemory::advance() {
  take_asked();
  for (int i = 0; i < OneSidedPort::kLanes; ++i) {
    Lane& lane = lanes_[static_cast<std::size_t>(i)];
    if (lane.of == nullptr || !port_->test(i)) continue;
    Transfer& t = *lane.of;
    lane.of = nullptr;
    --under_way_;
    --t.under_way;
    t.done += lane.bytes;
    if (t.done == t.bytes) finish(t);
  }
  for (int i = 0; i < OneSidedPort::kLanes; ++i)
    if (lanes_[static_cast<std::size_t>(i)].of == nullptr) begin_piece(i);
  if (under_way_ == 0) port_->serve();
  return under_way_ == 0;
}

void RemoteMemory::take_asked() {
  if (!asks_.load(std::memory_order_acquire)) return;
  const std::lock_guard lock(mutex_);
  waiting_.insert(waiting_.end(), asked_.begin(), asked_.end());
  asked_.clear();
  asks_ = false;
}

void RemoteMemory::finish(Transfer& transfer) {
  const std::lock_guard lock(mutex_);
  transfer.finished = true;
  finished_.notify_all();
}

// Begins a piece of the first transfer that may have another in flight. Then the others have their turn.
void RemoteMemory::begin_piece(int lane) {
  const auto next = std::ranges::find_if(waiting_, [](const Transfer* t) { return t->under_way < kWindow; });
  if (next == waiting_.end()) return;
  Transfer& t = **next;
  const Bytes bytes = std::min(kPiece, t.bytes - t.begun);
  if (t.put)
    port_->put(lane, t.data + t.begun.value, bytes, t.rank, t.offset + t.begun);
  else
    port_->get(lane, t.data + t.begun.value, bytes, t.rank, t.offset + t.begun);
  lanes_[static_cast<std::size_t>(lane)] = {&t, bytes};
  ++under_way_;
  ++t.under_way;
  t.begun += bytes;
  waiting_.erase(next);
  if (t.begun < t.bytes) waiting_.push_back(&t);
}

RemoteMemory::Owner::Owner(RemoteMemory* memory) : memory_(memory), exceptions_(std::uncaught_exceptions()) {
  if (memory_ != nullptr) before_ = memory_->owner_.exchange(std::this_thread::get_id());
}

RemoteMemory::Owner::~Owner() {
  if (memory_ == nullptr) return;
  memory_->owner_ = before_;
  if (std::uncaught_exceptions() == exceptions_) return;
  memory_->abandon();
}

}  // namespace hyperrun

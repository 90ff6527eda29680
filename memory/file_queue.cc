#include "memory/file_queue.h"

#include <liburing.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <utility>

#include "runtime/base/error.h"

namespace hyperrun {
namespace {

std::int64_t result_of(ssize_t moved) { return moved < 0 ? -errno : moved; }

}  // namespace

class FileQueue::Ring {
 public:
  Ring() : error_(io_uring_queue_init(kSlots, &ring_, 0)) {}
  ~Ring() {
    if (error_ == 0) io_uring_queue_exit(&ring_);
  }
  Ring(const Ring&) = delete;
  Ring& operator=(const Ring&) = delete;

  bool exists() const { return error_ == 0; }

  // The ring has room: it has as many entries as there are slots.
  template <class Prepare>
  void submit(std::size_t slot, Prepare prepare) {
    io_uring_sqe* const entry = io_uring_get_sqe(&ring_);
    HR_CHECK(entry != nullptr);
    prepare(entry);
    io_uring_sqe_set_data64(entry, slot);
    int submitted = 0;
    do submitted = io_uring_submit(&ring_);
    while (submitted == -EINTR || submitted == -EAGAIN);
    HR_CHECK(submitted == 1, std::to_string(submitted));
  }

  // Waits for the next completion. Returns its slot and result.
  std::pair<std::size_t, std::int64_t> wait() {
    io_uring_cqe* entry = nullptr;
    int error = 0;
    do error = io_uring_wait_cqe(&ring_, &entry);
    while (error == -EINTR);
    HR_CHECK(error == 0, std::to_string(error));
    const std::pair<std::size_t, std::int64_t> ended{io_uring_cqe_get_data64(entry), entry->res};
    io_uring_cqe_seen(&ring_, entry);
    return ended;
  }

 private:
  io_uring ring_{};
  int error_;
};

FileQueue::FileQueue(int file, Queued queued) : file_(file) {
  if (queued == Queued::kNever) return;
  ring_ = std::make_unique<Ring>();
  if (!ring_->exists()) ring_.reset();
}

FileQueue::~FileQueue() { finish_all(); }

void FileQueue::begin_read(std::size_t slot, std::byte* data, std::size_t bytes, std::int64_t offset) {
  begin(slot, {.busy = true, .data = data, .bytes = bytes, .offset = offset});
}

void FileQueue::begin_write(std::size_t slot, const std::byte* data, std::size_t bytes, std::int64_t offset) {
  begin(
      slot,
      {.busy = true, .write = true, .data = const_cast<std::byte*>(data), .bytes = bytes, .offset = offset});
}

void FileQueue::begin(std::size_t slot, const Slot& what) {
  HR_CHECK(!slots_.at(slot).busy);
  slots_[slot] = what;
  start(slot);
}

void FileQueue::start(std::size_t slot) {
  Slot& s = slots_[slot];
  std::byte* const data = s.data + s.moved;
  const std::size_t bytes = s.bytes - s.moved;
  const std::int64_t offset = s.offset + static_cast<std::int64_t>(s.moved);
  s.ended = ring_ == nullptr;
  if (ring_ == nullptr) {
    s.result = result_of(s.write ? pwrite(file_, data, bytes, offset) : pread(file_, data, bytes, offset));
    return;
  }
  ring_->submit(slot, [&](io_uring_sqe* entry) {
    const auto size = static_cast<unsigned>(bytes);
    const auto at = static_cast<std::uint64_t>(offset);
    if (s.write)
      io_uring_prep_write(entry, file_, data, size, at);
    else
      io_uring_prep_read(entry, file_, data, size, at);
  });
}

std::int64_t FileQueue::finish(std::size_t slot) {
  Slot& s = slots_.at(slot);
  HR_CHECK(s.busy);
  for (;;) {
    wait_for(slot);
    const bool again = s.result == -EINTR || s.result == -EAGAIN;
    if (s.result > 0) s.moved += static_cast<std::size_t>(s.result);
    if (s.moved == s.bytes || (s.result <= 0 && !again)) break;
    start(slot);
  }
  s.busy = false;
  return s.result < 0 ? s.result : static_cast<std::int64_t>(s.moved);
}

void FileQueue::finish_all() {
  for (std::size_t slot = 0; slot < kSlots; ++slot)
    if (slots_[slot].busy) finish(slot);
}

void FileQueue::wait_for(std::size_t slot) {
  while (!slots_[slot].ended) {
    const auto [of, result] = ring_->wait();
    slots_.at(of).result = result;
    slots_.at(of).ended = true;
  }
}

}  // namespace hyperrun

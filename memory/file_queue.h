// Asynchronous reads and writes of one file with io_uring (Axboe 2019). If the kernel lacks io_uring or
// forbids it, each operation completes when it is begun. One thread at a time may use a queue.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>

namespace hyperrun {

enum class Queued : std::uint8_t { kWherePossible, kNever };

class FileQueue {
 public:
  static constexpr std::size_t kSlots = 4;  // each holds at most one operation in flight

  explicit FileQueue(int file, Queued queued = Queued::kWherePossible);
  ~FileQueue();  // waits for operations in flight
  FileQueue(const FileQueue&) = delete;
  FileQueue& operator=(const FileQueue&) = delete;

  // Begins an operation in a free slot. The memory at `data` must stay valid until finish().
  void begin_read(std::size_t slot, std::byte* data, std::size_t bytes, std::int64_t offset);
  void begin_write(std::size_t slot, const std::byte* data, std::size_t bytes, std::int64_t offset);

  // Waits for the operation in a slot and frees the slot. Returns the bytes moved (fewer at the end of the
  // file) or -errno.
  std::int64_t finish(std::size_t slot);
  void finish_all();

  bool queued() const { return ring_ != nullptr; }

 private:
  class Ring;
  struct Slot {
    bool busy = false, write = false;
    std::byte* data = nullptr;  // a write does not change it
    std::size_t bytes = 0, moved = 0;
    std::int64_t offset = 0;
    std::int64_t result = 0;  // of the last attempt, once `ended`
    bool ended = false;
  };
  void begin(std::size_t slot, const Slot& what);
  void start(std::size_t slot);  // submits the bytes not moved yet
  void wait_for(std::size_t slot);

  int file_;
  std::unique_ptr<Ring> ring_;  // null: no io_uring
  std::array<Slot, kSlots> slots_{};
};

}  // namespace hyperrun

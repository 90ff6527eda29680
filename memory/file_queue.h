// Reads and writes of one file, several under way at once where the kernel has io_uring (Axboe 2019). Where
// it has not, or does not let us, each is done as soon as it is begun. Used by one thread at a time.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>

namespace hyperrun {

enum class Queued : std::uint8_t { kWherePossible, kNever };

class FileQueue {
 public:
  static constexpr std::size_t kSlots = 4;  // of each, one read or write is under way at most

  explicit FileQueue(int file, Queued queued = Queued::kWherePossible);
  ~FileQueue();  // waits for what is under way
  FileQueue(const FileQueue&) = delete;
  FileQueue& operator=(const FileQueue&) = delete;

  // What is at `data` stays there until finish(). The slot is free.
  void begin_read(std::size_t slot, std::byte* data, std::size_t bytes, std::int64_t offset);
  void begin_write(std::size_t slot, const std::byte* data, std::size_t bytes, std::int64_t offset);

  // Waits for the slot's, which was begun: how many bytes it has moved, fewer than were asked for where the
  // file ends; or -errno. It is free then.
  std::int64_t finish(std::size_t slot);
  void finish_all();

  bool queued() const { return ring_ != nullptr; }

 private:
  class Ring;
  struct Slot {
    bool busy = false, write = false;
    std::byte* data = nullptr;  // not written to by a write
    std::size_t bytes = 0, moved = 0;
    std::int64_t offset = 0;
    std::int64_t result = 0;  // of the last attempt, if it has ended
    bool ended = false;
  };
  void begin(std::size_t slot, const Slot& what);
  void start(std::size_t slot);  // what has not moved yet
  void wait_for(std::size_t slot);

  int file_;
  std::unique_ptr<Ring> ring_;  // null: none
  std::array<Slot, kSlots> slots_{};
};

}  // namespace hyperrun

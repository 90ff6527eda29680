// Memory beyond HBM: bytes are copied to it and from it, never computed on. Its size is what a plan has found
// to be needed; offsets come from the plan (offset_allocator.h).
#pragma once

#include <filesystem>
#include <memory>
#include <span>

#include "memory/arena.h"
#include "runtime/base/units.h"

namespace hyperrun {

// What of the bytes that were read and written so far lay on another host.
struct Elsewhere {
  Bytes read{}, written{};
};

// Reads and writes of different bytes may come from two threads at once. Throws when bytes lie outside.
class Backing {
 public:
  Backing() = default;
  Backing(const Backing&) = delete;
  Backing& operator=(const Backing&) = delete;
  virtual ~Backing() = default;

  virtual void read(Bytes offset, std::span<std::byte> into) = 0;
  virtual void write(Bytes offset, std::span<const std::byte> from) = 0;
  // The end of the highest byte that was written so far.
  virtual Bytes high_water() const = 0;
  virtual Elsewhere elsewhere() const { return {}; }
};

// A device's part of the pool that lies on its own host: a segment of a window that the host's ranks share.
// Parts that do not: spread_pool.h.
class PoolBacking : public Backing {
 public:
  explicit PoolBacking(Arena segment) : segment_(std::move(segment)) {}

  void read(Bytes offset, std::span<std::byte> into) override;
  void write(Bytes offset, std::span<const std::byte> from) override;
  Bytes high_water() const override { return segment_.high_water(); }

 private:
  Arena segment_;
};

// A file past the host's page cache (O_DIRECT, where the file system has it), several pieces of a transfer
// under way at once (file_queue.h). It has no name once it is open, so nothing is left of it, however the
// process ends. Offsets are multiples of kFlashPage. Each page that was written is read back as the same
// bytes, in whatever pieces, or the read throws: a disk that lies yields no wrong numbers.
class FlashBacking : public Backing {
 public:
  // Throws kUnwritable when the folder cannot be written to, kDoesNotFit when it has no room for all bytes.
  FlashBacking(const std::filesystem::path& folder, Bytes bytes);
  ~FlashBacking() override;

  void read(Bytes offset, std::span<std::byte> into) override;
  void write(Bytes offset, std::span<const std::byte> from) override;
  Bytes high_water() const override { return high_water_; }
  bool direct() const { return direct_; }
  int file() const { return file_; }

 private:
  class Lane;
  class Sums;
  void check(Bytes offset, std::size_t bytes) const;

  std::filesystem::path folder_;
  Bytes bytes_, high_water_{};
  int file_ = -1;
  bool direct_ = true;
  std::unique_ptr<Lane> in_, out_;  // for one reader and one writer
  std::unique_ptr<Sums> sums_;
};

inline constexpr Bytes kFlashPage{4096};

// Whether the file system of the folder (that may have to be made yet) has room for such files, before any is
// made: they look again, each for itself. Throws kUnwritable, or kDoesNotFit with what all take and what is
// free. Where the file system does not tell, nothing.
void require_flash_room(const std::filesystem::path& folder, std::span<const Bytes> files);

}  // namespace hyperrun

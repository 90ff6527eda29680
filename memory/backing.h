// Memory tiers below HBM. Bytes are copied to and from a backing, never computed on. The plan determines its
// size and all offsets (offset_allocator.h).
#pragma once

#include <filesystem>
#include <memory>
#include <span>

#include "memory/arena.h"
#include "runtime/base/units.h"

namespace hyperrun {

// Bytes read and written so far that lay on another host.
struct Elsewhere {
  Bytes read{}, written{};
};

// Two threads may read and write different bytes at once. Accesses outside the backing throw.
class Backing {
 public:
  Backing() = default;
  Backing(const Backing&) = delete;
  Backing& operator=(const Backing&) = delete;
  virtual ~Backing() = default;

  virtual void read(Bytes offset, std::span<std::byte> into) = 0;
  virtual void write(Bytes offset, std::span<const std::byte> from) = 0;
  // The end of the highest byte written so far.
  virtual Bytes high_water() const = 0;
  virtual Elsewhere elsewhere() const { return {}; }
};

// A device's part of the pool on its own host: a segment of a window that the host's ranks share. SpreadPool
// (spread_pool.h) is for parts on several hosts.
class PoolBacking : public Backing {
 public:
  explicit PoolBacking(Arena segment) : segment_(std::move(segment)) {}

  void read(Bytes offset, std::span<std::byte> into) override;
  void write(Bytes offset, std::span<const std::byte> from) override;
  Bytes high_water() const override { return segment_.high_water(); }

 private:
  Arena segment_;
};

// A file that bypasses the host's page cache (O_DIRECT, if the file system has it), with several pieces of a
// transfer in flight (file_queue.h). The open file is unlinked, so nothing is left of it, however the process
// ends. Offsets are multiples of kFlashPage. Every page is checked by a hash when it is read, in whatever
// pieces: a faulty disk causes an error, not wrong numbers.
class FlashBacking : public Backing {
 public:
  // Throws kUnwritable if the folder cannot be written to, kDoesNotFit if it has no room for `bytes`.
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
  std::unique_ptr<Lane> in_, out_;  // of one reader and one writer
  std::unique_ptr<Sums> sums_;
};

inline constexpr Bytes kFlashPage{4096};

// Checks that the folder's file system has room for all these files before any is made (each file checks
// again for itself). The folder need not exist yet. Throws kUnwritable, or kDoesNotFit with the sizes needed
// and free. Does nothing if the file system does not report its free space.
void require_flash_room(const std::filesystem::path& folder, std::span<const Bytes> files);

}  // namespace hyperrun

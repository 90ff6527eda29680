#include "memory/backing.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/statvfs.h>
#include <unistd.h>
#include <xxhash.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string>
#include <system_error>
#include <vector>

#include "memory/file_queue.h"
#include "runtime/base/error.h"
#include "runtime/base/file_size_limit.h"

namespace hyperrun {
namespace {

constexpr std::size_t kPiece = std::size_t{1} << 20;

std::size_t whole_pages(std::size_t bytes) {
  const auto page = static_cast<std::size_t>(kFlashPage.value);
  return (bytes + page - 1) / page * page;
}

Error failed(const char* what, const std::filesystem::path& folder, int error) {
  Error failure(Code::kUnwritable, std::string(what) + ": " + std::strerror(error));
  if (error == EFBIG) failure.fix(kRaiseFileSizeLimit);
  return failure.at(folder.string());
}

Error lost(const std::string& what, const std::filesystem::path& folder) {
  return Error(Code::kBadFlash, what).at(folder.string());
}

}  // namespace

void PoolBacking::read(Bytes offset, std::span<std::byte> into) {
  std::memcpy(into.data(), segment_.view(offset, Bytes(std::ssize(into))).data(), into.size());
}

void PoolBacking::write(Bytes offset, std::span<const std::byte> from) {
  segment_.touch(offset, Bytes(std::ssize(from)));
  std::memcpy(segment_.view(offset, Bytes(std::ssize(from))).data(), from.data(), from.size());
}

// Aligned buffers for pieces in flight, one for each slot of the queue. O_DIRECT requires the alignment.
class FlashBacking::Lane {
 public:
  explicit Lane(int file)
      : data_(static_cast<std::byte*>(std::aligned_alloc(kFlashPage.value, FileQueue::kSlots * kPiece))),
        queue_(file) {
    HR_CHECK(data_ != nullptr, "no memory");
    std::memset(data_, 0, FileQueue::kSlots * kPiece);
  }
  ~Lane() {
    queue_.finish_all();
    std::free(data_);
  }
  Lane(const Lane&) = delete;
  Lane& operator=(const Lane&) = delete;

  std::byte* data(std::size_t piece) { return data_ + slot(piece) * kPiece; }
  void begin_read(std::size_t piece, std::size_t bytes, std::int64_t offset) {
    queue_.begin_read(slot(piece), data(piece), bytes, offset);
  }
  void begin_write(std::size_t piece, std::size_t bytes, std::int64_t offset) {
    queue_.begin_write(slot(piece), data(piece), bytes, offset);
  }
  std::int64_t finish(std::size_t piece) { return queue_.finish(slot(piece)); }
  void finish_all() { queue_.finish_all(); }

 private:
  static std::size_t slot(std::size_t piece) { return piece % FileQueue::kSlots; }

  std::byte* data_;
  FileQueue queue_;
};

// Hashes of the written bytes, page by page, because reads may use other pieces than writes did. For a partly
// written page the hash covers the written part.
class FlashBacking::Sums {
 public:
  explicit Sums(Bytes bytes) : of_(page_of(bytes.value)) {}

  void note(std::int64_t offset, std::span<const std::byte> bytes) {
    each_page(of_, offset, bytes, [](Sum& sum, std::span<const std::byte> page) {
      sum = {XXH3_64bits(page.data(), page.size()), static_cast<std::uint32_t>(page.size())};
      return true;
    });
  }

  // Checks whole pages. Returns false if one of them differs from what was written.
  bool agree(std::int64_t offset, std::span<const std::byte> bytes) const {
    return each_page(of_, offset, bytes, [](const Sum& sum, std::span<const std::byte> page) {
      return page.size() >= sum.bytes && (sum.bytes == 0 || sum.hash == XXH3_64bits(page.data(), sum.bytes));
    });
  }

 private:
  struct Sum {
    std::uint64_t hash = 0;
    std::uint32_t bytes = 0;  // 0: not written
  };

  static std::size_t page_of(std::int64_t offset) {
    return static_cast<std::size_t>(offset / kFlashPage.value);
  }

  // Visits pages until `visit` returns false. No page is read by one thread and written by another at once.
  template <class List, class Visit>
  static bool each_page(List& of, std::int64_t offset, std::span<const std::byte> bytes, Visit visit) {
    constexpr auto kPage = static_cast<std::size_t>(kFlashPage.value);
    for (std::size_t at = 0, page = page_of(offset); at < bytes.size(); at += kPage, ++page)
      if (!visit(of[page], bytes.subspan(at, std::min(kPage, bytes.size() - at)))) return false;
    return true;
  }

  std::vector<Sum> of_;
};

namespace {

// The folder, or its nearest existing parent.
std::filesystem::path what_is_there(const std::filesystem::path& folder) {
  std::filesystem::path there = std::filesystem::absolute(folder);
  std::error_code looked_at_later;
  while (there.has_relative_path() && !std::filesystem::exists(there, looked_at_later))
    there = there.parent_path();
  return there;
}

// Only the superuser may use the reserved blocks.
Bytes free_on(const struct statvfs& system) {
  const auto blocks = static_cast<std::int64_t>(geteuid() == 0 ? system.f_bfree : system.f_bavail);
  return Bytes(blocks) * static_cast<std::int64_t>(system.f_frsize);
}

std::string bytes_words(Bytes b) { return fmt::format("{} bytes ({})", b.value, to_string(b)); }

}  // namespace

void require_flash_room(const std::filesystem::path& folder, std::span<const Bytes> files) {
  Bytes all{};
  std::ptrdiff_t count = 0;
  for (const Bytes b : files) {
    all += Bytes(static_cast<std::int64_t>(whole_pages(static_cast<std::size_t>(b.value))));
    count += b.value > 0 ? 1 : 0;
  }
  if (count == 0) return;
  const std::filesystem::path there = what_is_there(folder);
  struct statvfs system {};
  const bool is_folder = std::filesystem::is_directory(there);
  if (!is_folder || access(there.c_str(), W_OK | X_OK) != 0 || statvfs(there.c_str(), &system) != 0)
    throw failed("cannot make files on flash", folder, is_folder ? errno : ENOTDIR)
        .fix("choose a run.directory that you may write to");
  if (system.f_blocks == 0) return;
  const Bytes free = free_on(system);
  if (all <= free) return;
  throw Error(Code::kDoesNotFit,
              fmt::format("what the devices of this host keep on flash takes {} there, in {} {}; {} are "
                          "free",
                          bytes_words(all), count, count == 1 ? "file" : "files together", bytes_words(free)))
      .at(folder.string())
      .fix("free " + bytes_words(all - free) +
           " there, or choose a run.directory on a larger disk; less lies on flash with more "
           "supernode.hbm, or with memory.tier \"pool\"");
}

FlashBacking::FlashBacking(const std::filesystem::path& folder, Bytes bytes)
    : folder_(folder),
      bytes_(static_cast<std::int64_t>(whole_pages(static_cast<std::size_t>(bytes.value)))),
      sums_(std::make_unique<Sums>(bytes_)) {
  std::error_code shown_by_open;
  std::filesystem::create_directories(folder, shown_by_open);
  std::string name = (folder / "flash-XXXXXX").string();
  file_ = mkostemp(name.data(), O_CLOEXEC);
  if (file_ < 0)
    throw failed("cannot make a file on flash", folder, errno)
        .fix("choose a run.directory that you may write to");
  unlink(name.c_str());
  if (fcntl(file_, F_SETFL, fcntl(file_, F_GETFL) | O_DIRECT) != 0) direct_ = false;
  if (const int error = bytes_.value > 0 ? posix_fallocate(file_, 0, bytes_.value) : 0; error != 0) {
    close(file_);
    if (error == ENOSPC)
      throw Error(Code::kDoesNotFit, "there is no room for a file of " + to_string(bytes_))
          .at(folder.string())
          .fix("make room there, or choose a run.directory on a larger disk");
    throw failed("cannot make a file on flash as large as it has to be", folder, error);
  }
  in_ = std::make_unique<Lane>(file_), out_ = std::make_unique<Lane>(file_);
}

FlashBacking::~FlashBacking() {
  in_.reset(), out_.reset();  // waits for transfers in flight
  close(file_);
}

void FlashBacking::check(Bytes offset, std::size_t bytes) const {
  HR_CHECK(offset.value >= 0 && offset.value % kFlashPage.value == 0 &&
               static_cast<std::int64_t>(whole_pages(bytes)) <= (bytes_ - offset).value,
           fmt::format("offset {} + {} of {} bytes", offset.value, bytes, bytes_.value));
}

namespace {

// Moves `bytes` in pieces with up to one in flight per slot. Calls begin(piece, at, size) and, in the same
// order, end(piece, at, size). After an exception nothing is in flight.
template <class Lane, class Begin, class End>
void in_pieces(Lane& lane, std::size_t bytes, Begin begin, End end) try {
  const std::size_t pieces = (bytes + kPiece - 1) / kPiece;
  const auto each = [&](std::size_t piece, auto f) {
    f(piece, piece * kPiece, std::min(kPiece, bytes - piece * kPiece));
  };
  for (std::size_t p = 0; p < pieces + FileQueue::kSlots; ++p) {
    if (p >= FileQueue::kSlots && p - FileQueue::kSlots < pieces) each(p - FileQueue::kSlots, end);
    if (p < pieces) each(p, begin);
  }
} catch (...) {
  lane.finish_all();
  throw;
}

}  // namespace

void FlashBacking::read(Bytes offset, std::span<std::byte> into) {
  check(offset, into.size());
  const auto place = [&](std::size_t at) { return offset.value + static_cast<std::int64_t>(at); };
  const auto begin = [&](std::size_t piece, std::size_t at, std::size_t n) {
    in_->begin_read(piece, whole_pages(n), place(at));
  };
  const auto end = [&](std::size_t piece, std::size_t at, std::size_t n) {
    const std::int64_t got = in_->finish(piece);
    if (got < 0)
      throw lost("what was brought to flash cannot be read back: " +
                     std::string(std::strerror(static_cast<int>(-got))),
                 folder_);
    if (static_cast<std::size_t>(got) < n)
      throw lost("the file on flash is shorter than what was brought there", folder_);
    const std::span<const std::byte> pages{in_->data(piece), static_cast<std::size_t>(got)};
    if (!sums_->agree(place(at), pages))
      throw lost("what is read back from flash is not what was brought there", folder_);
    std::memcpy(into.data() + at, pages.data(), n);
  };
  in_pieces(*in_, into.size(), begin, end);
}

void FlashBacking::write(Bytes offset, std::span<const std::byte> from) {
  check(offset, from.size());
  const auto begin = [&](std::size_t piece, std::size_t at, std::size_t n) {
    const std::int64_t place = offset.value + static_cast<std::int64_t>(at);
    std::memcpy(out_->data(piece), from.data() + at, n);
    sums_->note(place, {out_->data(piece), n});
    out_->begin_write(piece, whole_pages(n), place);
  };
  const auto end = [&](std::size_t piece, std::size_t, std::size_t n) {
    const std::int64_t put = out_->finish(piece);
    if (put < static_cast<std::int64_t>(n))
      throw failed("cannot write to flash", folder_, put < 0 ? static_cast<int>(-put) : EIO);
  };
  in_pieces(*out_, from.size(), begin, end);
  high_water_ = std::max(high_water_, offset + Bytes(std::ssize(from)));
}

}  // namespace hyperrun

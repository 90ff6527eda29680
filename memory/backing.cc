#include "memory/backing.h"

#include <fcntl.h>
#include <unistd.h>
#include <xxhash.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <string>
#include <system_error>

#include "runtime/base/error.h"

namespace hyperrun {
namespace {

constexpr std::size_t kBounce = std::size_t{1} << 20;

std::size_t whole_pages(std::size_t bytes) {
  const auto page = static_cast<std::size_t>(kFlashPage.value);
  return (bytes + page - 1) / page * page;
}

Error failed(const char* what, const std::filesystem::path& folder, int error) {
  return Error(Code::kUnwritable, std::string(what) + ": " + std::strerror(error)).at(folder.string());
}

}  // namespace

void PoolBacking::read(Bytes offset, std::span<std::byte> into) {
  std::memcpy(into.data(), segment_.view(offset, Bytes(std::ssize(into))).data(), into.size());
}

void PoolBacking::write(Bytes offset, std::span<const std::byte> from) {
  segment_.touch(offset, Bytes(std::ssize(from)));
  std::memcpy(segment_.view(offset, Bytes(std::ssize(from))).data(), from.data(), from.size());
}

// Aligned as a transfer past the page cache has to be.
class FlashBacking::Bounce {
 public:
  Bounce() : data_(static_cast<std::byte*>(std::aligned_alloc(kFlashPage.value, kBounce))) {
    HR_CHECK(data_ != nullptr, "no memory");
    std::memset(data_, 0, kBounce);
  }
  ~Bounce() { std::free(data_); }
  Bounce(const Bounce&) = delete;
  Bounce& operator=(const Bounce&) = delete;
  std::byte* data() { return data_; }

 private:
  std::byte* data_;
};

// Of what was written, piece by piece.
class FlashBacking::Sums {
 public:
  void note(std::int64_t offset, std::span<const std::byte> bytes) {
    const Sum sum{bytes.size(), XXH3_64bits(bytes.data(), bytes.size())};
    const std::scoped_lock lock(mutex_);
    auto first = of_.lower_bound(offset);
    if (first != of_.begin() &&
        std::prev(first)->first + static_cast<std::int64_t>(std::prev(first)->second.bytes) > offset)
      --first;
    of_.erase(first, of_.lower_bound(offset + std::ssize(bytes)));
    of_.emplace(offset, sum);
  }

  // False: it was written in this piece, and is something else now.
  bool agree(std::int64_t offset, std::span<const std::byte> bytes) {
    const std::scoped_lock lock(mutex_);
    const auto known = of_.find(offset);
    return known == of_.end() || known->second.bytes != bytes.size() ||
           known->second.hash == XXH3_64bits(bytes.data(), bytes.size());
  }

 private:
  struct Sum {
    std::size_t bytes;
    std::uint64_t hash;
  };
  std::mutex mutex_;
  std::map<std::int64_t, Sum> of_;  // by offset, disjoint
};

FlashBacking::FlashBacking(const std::filesystem::path& folder, Bytes bytes)
    : folder_(folder),
      bytes_(static_cast<std::int64_t>(whole_pages(static_cast<std::size_t>(bytes.value)))),
      in_(std::make_unique<Bounce>()),
      out_(std::make_unique<Bounce>()),
      sums_(std::make_unique<Sums>()) {
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
}

FlashBacking::~FlashBacking() { close(file_); }

void FlashBacking::check(Bytes offset, std::size_t bytes) const {
  HR_CHECK(offset.value >= 0 && offset.value % kFlashPage.value == 0 &&
               static_cast<std::int64_t>(whole_pages(bytes)) <= (bytes_ - offset).value,
           "offset " + std::to_string(offset.value) + " + " + std::to_string(bytes) + " of " +
               std::to_string(bytes_.value) + " bytes");
}

void FlashBacking::read(Bytes offset, std::span<std::byte> into) {
  check(offset, into.size());
  for (std::size_t at = 0; at < into.size(); at += kBounce) {
    const std::size_t n = std::min(kBounce, into.size() - at);
    for (std::size_t got = 0; got < n;) {
      const ssize_t r =
          pread(file_, in_->data() + got, whole_pages(n) - got, offset.value + static_cast<off_t>(at + got));
      if (r < 0 && errno == EINTR) continue;
      if (r < 0) throw failed("cannot read back what was brought to flash", folder_, errno);
      if (r == 0) throw failed("the file on flash is shorter than what was brought there", folder_, EIO);
      got += static_cast<std::size_t>(r);
    }
    if (!sums_->agree(offset.value + static_cast<std::int64_t>(at), {in_->data(), n}))
      throw failed("what is read back from flash is not what was brought there", folder_, EIO)
          .fix("look at that disk: choose a run.directory on another one");
    std::memcpy(into.data() + at, in_->data(), n);
  }
}

void FlashBacking::write(Bytes offset, std::span<const std::byte> from) {
  check(offset, from.size());
  for (std::size_t at = 0; at < from.size(); at += kBounce) {
    const std::size_t n = std::min(kBounce, from.size() - at);
    std::memcpy(out_->data(), from.data() + at, n);
    sums_->note(offset.value + static_cast<std::int64_t>(at), {out_->data(), n});
    for (std::size_t put = 0; put < whole_pages(n);) {
      const ssize_t w = pwrite(file_, out_->data() + put, whole_pages(n) - put,
                               offset.value + static_cast<off_t>(at + put));
      if (w < 0 && errno == EINTR) continue;
      if (w <= 0) throw failed("cannot write to flash", folder_, w < 0 ? errno : EIO);
      put += static_cast<std::size_t>(w);
    }
  }
  high_water_ = std::max(high_water_, offset + Bytes(std::ssize(from)));
}

}  // namespace hyperrun

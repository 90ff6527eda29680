#include "runtime/model/checkpoint/files.h"

#include <fmt/core.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstdio>
#include <utility>

#include "runtime/model/checkpoint/lfs_pointer.h"
#include "runtime/model/checkpoint/posix.h"

namespace hyperrun {

namespace fs = std::filesystem;

std::string read_file(const fs::path& path, Code unreadable) {
  // O_NONBLOCK: opening a pipe that nobody writes must not hang.
  const posix::Descriptor fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!fd.valid() && (errno == ENOENT || errno == ENOTDIR))
    throw Error(Code::kMissingFile, "no such file").at(path.string());
  if (!fd.valid()) posix::fail(unreadable, "open", path);

  struct stat status {};
  if (::fstat(fd.get(), &status) != 0) posix::fail(unreadable, "read", path);
  if (!S_ISREG(status.st_mode)) throw Error(unreadable, "not a regular file").at(path.string());

  std::string content(static_cast<std::size_t>(status.st_size), '\0');
  std::size_t done = 0;
  while (done < content.size()) {
    const ssize_t n = ::read(fd.get(), content.data() + done, content.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) posix::fail(unreadable, "read", path);
    if (n == 0) throw Error(unreadable, "the file became shorter while it was read").at(path.string());
    done += static_cast<std::size_t>(n);
  }
  refuse_lfs_pointer(content, path, unreadable);
  return content;
}

AtomicFile::AtomicFile(fs::path path, std::int64_t bytes) : path_(std::move(path)), bytes_(bytes) {
  temporary_ = posix::parent(path_) / fmt::format(".{}.{}", path_.filename().string(), ::getpid());
  fd_ = ::open(temporary_.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (fd_ < 0) posix::fail(Code::kUnwritable, "create a file", path_);
  const int error = bytes > 0 ? ::posix_fallocate(fd_, 0, bytes) : 0;
  if (error == 0) return;
  ::close(fd_);
  ::unlink(temporary_.c_str());
  errno = error;
  posix::fail(Code::kUnwritable, fmt::format("reserve {} bytes", bytes), path_);
}

AtomicFile::~AtomicFile() {
  if (direct_.value_or(-1) >= 0) ::close(*direct_);
  if (fd_ < 0) return;
  ::close(fd_);
  ::unlink(temporary_.c_str());
}

void AtomicFile::write(std::int64_t offset, std::span<const std::byte> data) {
  HR_CHECK(fd_ >= 0 && offset >= 0 && offset + std::ssize(data) <= bytes_, path_.string());
  while (!data.empty()) {
    const ssize_t n = ::pwrite(fd_, data.data(), data.size(), offset);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) posix::fail(Code::kUnwritable, "write", path_);
    data = data.subspan(static_cast<std::size_t>(n));
    offset += n;
  }
}

void AtomicFile::write_pages(std::int64_t offset, std::span<const std::byte> data) {
  constexpr std::size_t kPage = 4096;  // no disk wants more
  HR_CHECK(fd_ >= 0 && offset >= 0 && offset + std::ssize(data) <= bytes_, path_.string());
  if (!direct_) direct_ = ::open(temporary_.c_str(), O_WRONLY | O_DIRECT | O_CLOEXEC);
  const bool aligned = offset % kPage == 0 && reinterpret_cast<std::uintptr_t>(data.data()) % kPage == 0;
  while (*direct_ >= 0 && aligned && data.size() >= kPage) {
    const ssize_t n = ::pwrite(*direct_, data.data(), data.size() / kPage * kPage, offset);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno != EINVAL) posix::fail(Code::kUnwritable, "write", path_);
    if (n <= 0 || n % kPage != 0) break;
    data = data.subspan(static_cast<std::size_t>(n));
    offset += n;
  }
  write(offset, data);
}

void AtomicFile::commit() {
  HR_CHECK(fd_ >= 0, path_.string());
  if (::fsync(fd_) != 0) posix::fail(Code::kUnwritable, "flush", path_);
  if (::rename(temporary_.c_str(), path_.c_str()) != 0) posix::fail(Code::kUnwritable, "put in place", path_);
  ::close(std::exchange(fd_, -1));
  posix::flush(posix::parent(path_));
}

void write_file(const fs::path& path, std::string_view content) {
  AtomicFile file(path, static_cast<std::int64_t>(content.size()));
  file.write(0, std::as_bytes(std::span(content)));
  file.commit();
}

}  // namespace hyperrun

// System calls on files that report failures as Error.
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <string>
#include <utility>

#include "runtime/base/error.h"
#include "runtime/base/file_size_limit.h"

namespace hyperrun::posix {

// Throws "cannot WHAT: REASON", with the reason of errno, at the path.
[[noreturn]] inline void fail(Code code, const std::string& what, const std::filesystem::path& path) {
  const int reason = errno;
  Error error(code, "cannot " + what + ": " + std::strerror(reason));
  if (reason == EFBIG) error.fix(kRaiseFileSizeLimit);
  throw error.at(path.string());
}

// A file descriptor that is closed on every way out of a scope.
class Descriptor {
 public:
  explicit Descriptor(int fd = -1) : fd_(fd) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Descriptor& operator=(Descriptor&&) = delete;
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }

  int get() const { return fd_; }
  bool valid() const { return fd_ >= 0; }

 private:
  int fd_;
};

// Flushes the content of a file, or the names in a directory, to the disk.
inline void flush(const std::filesystem::path& path) {
  const Descriptor fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  // Some file systems cannot flush a directory and say EINVAL; there is nothing more to do then.
  if (!fd.valid() || (::fsync(fd.get()) != 0 && errno != EINVAL)) fail(Code::kUnwritable, "flush", path);
}

// The directory that holds the name `path`.
inline std::filesystem::path parent(const std::filesystem::path& path) {
  return path.has_parent_path() ? path.parent_path() : std::filesystem::path(".");
}

}  // namespace hyperrun::posix

#include "runtime/media/file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include <cerrno>
#include <system_error>

#include "runtime/base/error.h"
#include "runtime/base/format.h"

namespace hyperrun {

namespace fs = std::filesystem;

namespace {

constexpr std::int64_t kMostBytes = std::int64_t{1} << 30;

// A file descriptor that closes itself.
class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return fd_; }

 private:
  int fd_;
};

std::string reason(int error) { return std::generic_category().message(error); }

Error unreadable(const fs::path& path, const std::string& cause) {
  return Error(Code::kBadCorpus, cause).at(path.string()).fix("grant read permission, or name another file");
}

Error unwritable(const fs::path& path, int error) {
  return Error(Code::kUnwritable, "cannot be written: " + reason(error)).at(path.string());
}

std::string read_all(int fd, std::size_t bytes, const fs::path& path) {
  std::string content(bytes, '\0');
  std::size_t done = 0;
  while (done < bytes) {
    const ssize_t n = ::read(fd, content.data() + done, bytes - done);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) throw unreadable(path, "cannot be read: " + reason(errno));
    if (n == 0) throw unreadable(path, "the file became shorter while it was read");
    done += static_cast<std::size_t>(n);
  }
  return content;
}

void write_all(int fd, std::string_view content, const fs::path& path) {
  while (!content.empty()) {
    const ssize_t n = ::write(fd, content.data(), content.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) throw unwritable(path, errno);
    content.remove_prefix(static_cast<std::size_t>(n));
  }
}

}  // namespace

std::string read_media_file(const fs::path& path) {
  // O_NONBLOCK: opening a pipe that nobody writes must not hang.
  const Descriptor fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (fd.get() < 0 && (errno == ENOENT || errno == ENOTDIR))
    throw Error(Code::kMissingFile, "no such file").at(path.string());
  if (fd.get() < 0) throw unreadable(path, "cannot be opened: " + reason(errno));
  struct stat status {};
  if (::fstat(fd.get(), &status) != 0) throw unreadable(path, "cannot be read: " + reason(errno));
  if (!S_ISREG(status.st_mode)) throw unreadable(path, "not a regular file");
  if (status.st_size > kMostBytes)
    throw unreadable(path, "has " + std::to_string(status.st_size) + " bytes").legal("up to 1 GiB");
  return read_all(fd.get(), static_cast<std::size_t>(status.st_size), path);
}

void write_media_file(const fs::path& path, std::string_view content) {
  std::error_code error;
  fs::create_directories(path.parent_path(), error);  // open says so where it fails
  const fs::path temporary = path.parent_path() / ("." + path.filename().string() + ".part");
  const Descriptor fd(::open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666));
  if (fd.get() < 0) throw unwritable(path, errno);
  try {
    write_all(fd.get(), content, path);
    if (::rename(temporary.c_str(), path.c_str()) != 0) throw unwritable(path, errno);
  } catch (...) {
    ::unlink(temporary.c_str());
    throw;
  }
}

std::string xxh3(std::string_view content) {
  return format("%016llx", static_cast<unsigned long long>(XXH3_64bits(content.data(), content.size())));
}

}  // namespace hyperrun

#include "runtime/device/copies_folder.h"

#include <fmt/core.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <cstdint>
#include <mutex>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#include "runtime/model/checkpoint/posix.h"

namespace hyperrun {

namespace fs = std::filesystem;

namespace {

// Folders of this process, for leave_copies(), and of its runs.
struct Held {
  std::mutex mutex;
  std::set<int> locks;
  std::set<fs::path> watched;
};
Held& held() {
  static Held all;
  return all;
}

std::string prefix() { return fmt::format("hyperrun-copies.{}.", ::geteuid()); }

// FNV-1a. The same text has the same hash in all processes of a run.
std::uint64_t hash_of(std::string_view text) {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return hash;
}

// Whether the locked folder still has its name: another process may have removed it before it was locked.
bool is_in_place(int fd, const fs::path& path) {
  struct stat locked {
  }, named{};
  return ::fstat(fd, &locked) == 0 && ::stat(path.c_str(), &named) == 0 && locked.st_dev == named.st_dev &&
         locked.st_ino == named.st_ino;
}

int lock_shared(const fs::path& path) {
  for (;;) {
    if (::mkdir(path.c_str(), 0700) != 0 && errno != EEXIST) posix::fail(Code::kUnwritable, "create", path);
    const int fd = ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0 && errno == ENOENT) continue;
    if (fd < 0) posix::fail(Code::kUnwritable, "open", path);
    if (::flock(fd, LOCK_SH) == 0 && is_in_place(fd, path)) return fd;
    ::close(fd);
  }
}

bool is_own(const fs::path& file) {
  struct stat status {};
  return ::lstat(file.c_str(), &status) == 0 && status.st_uid == ::geteuid() && S_ISDIR(status.st_mode);
}

fs::path run_lock_of(const fs::path& folder) { return folder / ".run"; }

void remove_if_free(const fs::path& folder) {
  const posix::Descriptor fd(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  std::error_code ignored;  // another process may be removing the same
  if (fd.valid() && ::flock(fd.get(), LOCK_EX | LOCK_NB) == 0) fs::remove_all(folder, ignored);
}

void remove_if_the_run_is_gone(const fs::path& folder) {
  const posix::Descriptor run(::open(run_lock_of(folder).c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC));
  std::error_code ignored;
  if (run.valid() && ::flock(run.get(), LOCK_EX | LOCK_NB) == 0) fs::remove_all(folder, ignored);
}

}  // namespace

fs::path copies_folder(const fs::path& run_directory, const std::string& program, const fs::path& shm) {
  return shm / (prefix() + fmt::format("{:016x}", hash_of(run_directory.string() + "\n" + program)));
}

CopiesFolder::CopiesFolder(fs::path path, AtEnd at_end)
    : path_(std::move(path)), at_end_(at_end), lock_(lock_shared(path_)) {
  if (at_end == AtEnd::kRemove) {
    run_lock_ = ::open(run_lock_of(path_).c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (run_lock_ < 0 || ::flock(run_lock_, LOCK_SH) != 0)
      posix::fail(Code::kUnwritable, "lock", run_lock_of(path_));
  }
  const std::lock_guard guard(held().mutex);
  held().locks.insert(lock_);
}

CopiesFolder::~CopiesFolder() {
  {
    const std::lock_guard guard(held().mutex);
    if (held().locks.erase(lock_) == 0) return;  // the process has left it
  }
  std::error_code ignored;  // the next run removes what is left
  if (at_end_ == AtEnd::kRemove || ::flock(lock_, LOCK_EX | LOCK_NB) == 0) fs::remove_all(path_, ignored);
  ::close(lock_);
  if (run_lock_ >= 0) ::close(run_lock_);
}

void remove_stale_copies(const fs::path& shm) {
  std::vector<fs::path> folders;
  std::error_code error;
  for (fs::directory_iterator i(shm, error), end; !error && i != end; i.increment(error))
    if (i->path().filename().string().starts_with(prefix()) && is_own(i->path()))
      folders.push_back(i->path());
  for (const fs::path& folder : folders) remove_if_free(folder);
}

void watch_copies(const fs::path& folder) {
  const std::lock_guard guard(held().mutex);
  held().watched.insert(folder);
}

void remove_copies_of_gone_runs(std::chrono::milliseconds limit) {
  const std::lock_guard guard(held().mutex);
  const auto until = std::chrono::steady_clock::now() + limit;
  for (const fs::path& folder : held().watched)
    for (std::error_code gone;;) {
      remove_if_the_run_is_gone(folder);
      if (!fs::exists(folder, gone) || std::chrono::steady_clock::now() >= until) break;
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
}

void leave_copies(const fs::path& shm) {
  {
    const std::lock_guard guard(held().mutex);
    for (const int lock : std::exchange(held().locks, {})) ::close(lock);
  }
  remove_stale_copies(shm);
}

}  // namespace hyperrun

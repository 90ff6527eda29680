#include <sys/file.h>
#include <sys/stat.h>

#include <cstdio>
#include <system_error>
#include <utility>
#include <vector>

#include "runtime/model/checkpoint/files.h"
#include "runtime/model/checkpoint/posix.h"

namespace hyperrun {

namespace fs = std::filesystem;

namespace {

// The names beside the final one. They are fixed, so that what a killed writer left is found again.
fs::path beside(const fs::path& final_path, const char* suffix) {
  return posix::parent(final_path) / ("." + final_path.filename().string() + suffix);
}
constexpr const char* kPartial = ".partial";
fs::path partial_of(const fs::path& final_path) { return beside(final_path, kPartial); }
fs::path old_of(const fs::path& final_path) { return beside(final_path, ".old"); }

// "a/b/" and "a/b" are the same directory.
fs::path without_slash(const fs::path& path) {
  const fs::path normal = path.lexically_normal();
  return normal.has_filename() ? normal : normal.parent_path();
}

// True if the locked directory still has that name. Another writer may have moved it into place before we
// locked it.
bool is_same_directory(int fd, const fs::path& path) {
  struct stat locked {
  }, named{};
  return ::fstat(fd, &locked) == 0 && ::stat(path.c_str(), &named) == 0 && locked.st_dev == named.st_dev &&
         locked.st_ino == named.st_ino;
}

int lock_directory(const fs::path& path, const fs::path& final_path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) posix::fail(Code::kUnwritable, "open", path);
  if (::flock(fd, LOCK_EX | LOCK_NB) == 0 && is_same_directory(fd, path)) return fd;
  ::close(fd);
  throw Error(Code::kUnwritable, "another process is writing this directory")
      .at(final_path.string())
      .fix("give each run a directory of its own");
}

void flush_tree(const fs::path& root) {
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(root))
    if (entry.is_regular_file() || entry.is_directory()) posix::flush(entry.path());
  posix::flush(root);
}

void rename_or_fail(const fs::path& from, const fs::path& to) {
  if (::rename(from.c_str(), to.c_str()) != 0) posix::fail(Code::kUnwritable, "put in place", to);
}

// Puts `partial` in the place of `final_path`; `partial` is gone afterwards.
void replace_directory(const fs::path& partial, const fs::path& final_path) {
  if (::renameat2(AT_FDCWD, partial.c_str(), AT_FDCWD, final_path.c_str(), RENAME_EXCHANGE) == 0) {
    posix::flush(posix::parent(final_path));
    fs::remove_all(partial);
    return;
  }
  if (errno != EINVAL && errno != ENOSYS) posix::fail(Code::kUnwritable, "put in place", final_path);
  const fs::path old = old_of(final_path);
  fs::remove_all(old);
  rename_or_fail(final_path, old);
  rename_or_fail(partial, final_path);
  posix::flush(posix::parent(final_path));
  fs::remove_all(old);
}

// Nothing if a living process holds the lock.
void remove_unlocked(const fs::path& directory) {
  const posix::Descriptor fd(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  std::error_code ignored;
  if (fd.valid() && ::flock(fd.get(), LOCK_EX | LOCK_NB) == 0) fs::remove_all(directory, ignored);
}

}  // namespace

AtomicDirectory::AtomicDirectory(const fs::path& final_path)
    : final_(without_slash(final_path)), temporary_(partial_of(final_)) {
  std::error_code error;
  if (fs::exists(final_, error) && !fs::is_directory(final_, error))
    throw Error(Code::kUnwritable, "exists and is not a directory").at(final_.string());
  fs::create_directories(temporary_, error);
  if (error) throw Error(Code::kUnwritable, "cannot create: " + error.message()).at(final_.string());
  lock_ = lock_directory(temporary_, final_);
  for (const fs::directory_entry& left : fs::directory_iterator(temporary_, error))
    fs::remove_all(left.path(), error);
}

AtomicDirectory::~AtomicDirectory() {
  if (lock_ < 0) return;
  std::error_code ignored;  // the leftover is removed by the next writer
  fs::remove_all(temporary_, ignored);
  ::close(lock_);
}

fs::path AtomicDirectory::path_of(const fs::path& final_path) {
  return partial_of(without_slash(final_path));
}

void AtomicDirectory::commit() try {
  HR_CHECK(lock_ >= 0, final_.string());
  flush_tree(temporary_);
  recover_directory(final_);
  if (fs::exists(final_)) {
    replace_directory(temporary_, final_);
  } else {
    rename_or_fail(temporary_, final_);
    posix::flush(posix::parent(final_));
  }
  ::close(std::exchange(lock_, -1));
} catch (const fs::filesystem_error& e) {
  throw Error(Code::kUnwritable, e.what()).at(final_.string());
}

void recover_directory(const fs::path& final_path) {
  const fs::path place = without_slash(final_path);
  const fs::path old = old_of(place);
  std::error_code error;
  if (!fs::exists(place, error) && fs::is_directory(old, error)) rename_or_fail(old, place);
}

void remove_directory(const fs::path& path) try {
  const fs::path partial = partial_of(without_slash(path));
  fs::remove_all(partial);
  rename_or_fail(path, partial);
  fs::remove_all(partial);
} catch (const fs::filesystem_error& e) {
  throw Error(Code::kUnwritable, e.what()).at(path.string());
}

void remove_unfinished(const fs::path& folder, std::string_view prefix) {
  const std::string begin = "." + std::string(prefix);
  std::vector<fs::path> left;
  std::error_code gone;
  for (fs::directory_iterator i(folder, gone), end; !gone && i != end; i.increment(gone)) {
    const std::string name = i->path().filename();
    if (name.starts_with(begin) && name.ends_with(kPartial)) left.push_back(i->path());
  }
  for (const fs::path& directory : left) remove_unlocked(directory);
}

}  // namespace hyperrun

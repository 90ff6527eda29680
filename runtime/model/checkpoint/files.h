// Files that are whole or absent: everything a run leaves behind is first written beside its place
// under a temporary name, flushed to the disk, and renamed, so that a kill at any moment leaves the
// old content or the new, never a part.
//
// Errors: kMissingFile where nothing is there to read, kUnwritable where writing fails (no space, no
// permission, a parent that is a file), each with the path and the system's reason.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "runtime/base/error.h"

namespace hyperrun {

// The whole file. `unreadable` is the code for a path that exists and cannot be read as a file, and for a
// pointer of Git LFS in a file's place.
std::string read_file(const std::filesystem::path& path, Code unreadable);

// A file of a size that is known up front, written in any order.
class AtomicFile {
 public:
  // Reserves `bytes` on the disk at once, so that a full disk is found before the work.
  AtomicFile(std::filesystem::path path, std::int64_t bytes);
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;
  ~AtomicFile();  // without commit() nothing is left behind

  void write(std::int64_t offset, std::span<const std::byte> data);
  // The same without the page cache (O_DIRECT), where the file system can and offset and address are those of
  // pages: the disk reads the memory itself, which takes a third of the processor's time.
  void write_pages(std::int64_t offset, std::span<const std::byte> data);
  void commit();  // once; then the file is in its place, on the disk

 private:
  std::filesystem::path path_, temporary_;
  std::int64_t bytes_;
  int fd_ = -1;
  std::optional<int> direct_;  // opened by the first write_pages(); -1: the file system cannot
};

void write_file(const std::filesystem::path& path, std::string_view content);

// A directory that appears at once. It is filled under path() by any code, in any number of files,
// and takes its final place in commit(), where it replaces an older one in one exchange.
class AtomicDirectory {
 public:
  // Creates the parents of `final_path` and an empty directory beside it; what a killed writer left
  // there is removed. kUnwritable when another process is writing the same directory.
  explicit AtomicDirectory(const std::filesystem::path& final_path);
  AtomicDirectory(const AtomicDirectory&) = delete;
  AtomicDirectory& operator=(const AtomicDirectory&) = delete;
  ~AtomicDirectory();  // without commit() nothing is left behind

  const std::filesystem::path& path() const { return temporary_; }
  // The path() of a directory that another process has begun, for one that fills a part of it.
  static std::filesystem::path path_of(const std::filesystem::path& final_path);
  void commit();  // once; flushes every file and directory below path(), then renames

 private:
  std::filesystem::path final_, temporary_;
  int lock_ = -1;  // the directory itself, held with flock; the kernel lets go when we are killed
};

// Repairs an interrupted commit(). On file systems that cannot exchange two directories, commit() moves the
// old one aside for a moment; this puts it back if a kill fell into that moment. Readers call it before they
// look.
void recover_directory(const std::filesystem::path& final_path);

// Removes a directory. A kill meanwhile leaves what remove_unfinished() finds, and never a part under the
// directory's own name. Throws kUnwritable.
void remove_directory(const std::filesystem::path& path);

// Removes what killed writers left in `folder` of directories whose names begin with `prefix`. What a living
// process is writing stays. Errors are ignored: the next call finds the rest.
void remove_unfinished(const std::filesystem::path& folder, std::string_view prefix);

}  // namespace hyperrun

// A file that is written piece by piece, with errors that name the file and a remedy.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "runtime/base/error.h"

namespace hyperrun {

// An error kUnwritable with the cause and remedy of the errno value.
Error unwritable(const std::filesystem::path& path, std::string_view doing, int error_number);

// Reads the whole file. Throws kMissingFile.
std::string read_whole_file(const std::filesystem::path& path);

// A file descriptor that closes itself. Every call throws kUnwritable if it fails.
class OutputFile {
 public:
  OutputFile(std::filesystem::path path, int open_flags);
  ~OutputFile();
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  int fd() const { return fd_; }
  const std::filesystem::path& path() const { return path_; }

  void write(std::string_view data);
  void sync();   // writes to the disk
  void close();  // reports errors that a file system notices only now

 private:
  std::filesystem::path path_;
  int fd_ = -1;
};

}  // namespace hyperrun

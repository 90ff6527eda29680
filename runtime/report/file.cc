#include "runtime/report/file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>
#include <sstream>
#include <system_error>
#include <utility>

#include "runtime/base/file_size_limit.h"

namespace hyperrun {
namespace {

const char* remedy(int error_number) {
  switch (error_number) {
    case ENOSPC:
    case EDQUOT: return "free space on that file system or set run.directory to another one";
    case EFBIG: return kRaiseFileSizeLimit;
    case EACCES:
    case EPERM: return "grant write permission there or set run.directory to a folder you may write to";
    case EROFS: return "that file system is read-only: set run.directory to another one";
    case ENOTDIR:
    case EEXIST:
      return "a file stands where a folder is needed: move it or set run.directory to another path";
    case ENAMETOOLONG: return "set run.directory to a shorter path";
    default: return "set run.directory to a folder you may write to";
  }
}

}  // namespace

Error unwritable(const std::filesystem::path& path, std::string_view doing, int error_number) {
  std::string cause = "cannot " + std::string(doing) + ": " + std::generic_category().message(error_number);
  return Error(Code::kUnwritable, std::move(cause)).at(path.string()).fix(remedy(error_number));
}

std::string read_whole_file(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream text;
  if (in) text << in.rdbuf();
  std::error_code ignored;
  if (!in || in.bad() || std::filesystem::is_directory(path, ignored)) {
    throw Error(Code::kMissingFile, "cannot be read")
        .at(path.string())
        .fix("give the folder of a finished run");
  }
  return text.str();
}

OutputFile::OutputFile(std::filesystem::path path, int open_flags) : path_(std::move(path)) {
  fd_ = ::open(path_.c_str(), open_flags | O_CLOEXEC, 0666);
  if (fd_ < 0) throw unwritable(path_, "create the file", errno);
}

OutputFile::~OutputFile() {
  if (fd_ >= 0) ::close(fd_);
}

void OutputFile::write(std::string_view data) {
  while (!data.empty()) {
    auto n = ::write(fd_, data.data(), data.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) throw unwritable(path_, "write the file", errno);
    data.remove_prefix(static_cast<std::size_t>(n));
  }
}

void OutputFile::sync() {
  // Pipes and some file systems cannot sync; there is nothing to make durable then.
  if (::fsync(fd_) != 0 && errno != EINVAL && errno != EROFS) throw unwritable(path_, "sync the file", errno);
}

void OutputFile::close() {
  if (fd_ < 0) return;
  int result = ::close(std::exchange(fd_, -1));
  if (result != 0 && errno != EINTR) throw unwritable(path_, "close the file", errno);
}

}  // namespace hyperrun

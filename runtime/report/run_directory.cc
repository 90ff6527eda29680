#include "runtime/report/run_directory.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cctype>
#include <cerrno>
#include <ctime>
#include <system_error>

#include "runtime/report/file.h"

namespace hyperrun {
namespace fs = std::filesystem;
namespace {

std::string file_name(std::string_view text) {
  std::string out(text);
  for (char& c : out) {
    bool plain = std::isalnum(static_cast<unsigned char>(c)) || c == '.' || c == '_' || c == '-';
    if (!plain) c = '_';
  }
  return out;
}

std::string local_time(Nanos since_epoch) {
  std::time_t seconds = since_epoch.value / 1'000'000'000;
  std::tm parts{};
  localtime_r(&seconds, &parts);
  std::array<char, 32> text{};
  std::strftime(text.data(), text.size(), "%Y%m%d-%H%M%S", &parts);
  return text.data();
}

void replace_all(std::string& text, std::string_view from, std::string_view to) {
  for (auto at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size())) {
    text.replace(at, from.size(), to);
  }
}

// Returns true if `path` is ours now: made, or there and empty. mkdir decides between two runs that start at
// the same time.
bool claim(const fs::path& path) {
  std::error_code error;
  if (fs::create_directory(path, error)) return true;
  if (error) throw unwritable(path, "create the run directory", error.value());
  bool empty = fs::is_empty(path, error);
  if (error) throw unwritable(path, "look into the run directory", error.value());
  return empty;
}

// The path with a name at its end, so that a suffix can be appended.
fs::path clean(const fs::path& path) {
  auto p = path.lexically_normal();
  if (!p.has_filename()) p = p.parent_path();
  bool named = !p.empty() && p.filename() != "." && p.filename() != "..";
  if (named) return p;
  p = fs::absolute(path).lexically_normal();
  return p.has_filename() ? p : p.parent_path();
}

}  // namespace

void write_file_atomically(const fs::path& path, std::string_view content) {
  fs::path temporary = path;
  temporary += ".tmp" + std::to_string(::getpid());
  try {
    OutputFile file(temporary, O_WRONLY | O_CREAT | O_TRUNC);
    file.write(content);
    file.sync();
    file.close();
    if (::rename(temporary.c_str(), path.c_str()) != 0) throw unwritable(path, "replace the file", errno);
  } catch (const Error&) {
    ::unlink(temporary.c_str());
    throw;
  }
}

std::string expand_directory(std::string_view pattern, std::string_view job, Nanos since_epoch) {
  std::string path(pattern);
  replace_all(path, "{job}", file_name(job));
  replace_all(path, "{time}", local_time(since_epoch));
  return path;
}

RunDirectory RunDirectory::create(const fs::path& path) {
  fs::path wanted = clean(path);
  std::error_code error;
  if (wanted.has_parent_path()) fs::create_directories(wanted.parent_path(), error);
  if (error) throw unwritable(wanted.parent_path(), "create the folder of the run directory", error.value());

  RunDirectory dir;
  dir.path_ = wanted;
  for (int suffix = 2; !claim(dir.path_); ++suffix) {
    dir.path_ = wanted;
    dir.path_ += "-" + std::to_string(suffix);
  }
  if (::access(dir.path_.c_str(), W_OK | X_OK) != 0) {
    throw unwritable(dir.path_, "write into the run directory", errno);
  }
  if (dir.path_ != wanted) {
    dir.notice_ =
        wanted.string() + " holds an earlier run, which is kept: this run is in " + dir.path_.string();
  }
  return dir;
}

void RunDirectory::write(std::string_view name, std::string_view content) const {
  write_file_atomically(file(name), content);
}

}  // namespace hyperrun

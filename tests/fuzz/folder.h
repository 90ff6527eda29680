// Inputs of several files, for readers of folders. An input is a text that is easily written by hand:
//
//   --- config.json
//   {"model_type": "llama"}
//   --- model.safetensors
//   ...
//
// The line break before "---" belongs to no file.
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "tests/fuzz/fuzz.h"

namespace hyperrun::fuzz {

struct InputFile {
  std::string name;
  std::string_view content;
};

// The files of an input. What is before the first of them is left out.
inline std::vector<InputFile> files_of(std::string_view input) {
  constexpr std::string_view kMark = "--- ";
  std::vector<InputFile> files;
  std::size_t at = input.starts_with(kMark) ? 0 : input.find("\n--- ");
  while (at != std::string_view::npos && files.size() < 8) {
    input.remove_prefix(at + (input[at] == '\n' ? 1 : 0) + kMark.size());
    const std::size_t name_end = std::min(input.find('\n'), input.size());
    const std::string name(input.substr(0, name_end));
    input.remove_prefix(std::min(name_end + 1, input.size()));
    at = input.find("\n--- ");
    files.push_back({name, input.substr(0, at)});
  }
  return files;
}

// A folder in memory where there is one (/dev/shm), which goes with the process.
class Folder {
 public:
  Folder() {
    std::error_code none;
    const std::filesystem::path in =
        std::filesystem::exists("/dev/shm", none) ? "/dev/shm" : std::filesystem::temp_directory_path();
    std::string pattern = (in / "hyperrun-fuzz-XXXXXX").string();
    expect(::mkdtemp(pattern.data()) != nullptr, "no folder for files");
    path_ = pattern;
  }
  ~Folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;

  const std::filesystem::path& path() const { return path_; }

  void put(const std::string& name, std::string_view content) {
    const int fd = ::open((path_ / name).c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    expect(fd >= 0, "the file cannot be opened");
    const ssize_t written = ::write(fd, content.data(), content.size());
    expect(written == static_cast<ssize_t>(content.size()), "the file cannot be written");
    ::close(fd);
  }

  // Makes these the folder's files. A name that is not among `allowed` stands for nothing: a file elsewhere
  // must not be written.
  void fill(const std::vector<InputFile>& files, const std::vector<std::string_view>& allowed) {
    for (const std::string_view name : allowed) ::unlink((path_ / name).c_str());
    for (const InputFile& file : files)
      for (const std::string_view name : allowed)
        if (file.name == name) put(file.name, file.content);
  }

 private:
  std::filesystem::path path_;
};

}  // namespace hyperrun::fuzz

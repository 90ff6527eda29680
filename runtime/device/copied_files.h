// The files of a checkpoint in the memory of this host. All processes of the host fill them together.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <utility>
#include <vector>

#include "runtime/device/state_image.h"

namespace hyperrun {

class CopiedFiles {
 public:
  // Makes the files in an existing folder of /dev/shm, takes the memory for all of their bytes, and writes
  // their headers. Throws kUnwritable if there is not enough memory.
  static CopiedFiles create(const std::filesystem::path& folder, const StateImage& image);
  // Opens files that another process, or another device of this one, has made.
  static CopiedFiles open(const std::filesystem::path& folder, const StateImage& image);

  CopiedFiles(CopiedFiles&& other) noexcept : files_(std::exchange(other.files_, {})) {}
  CopiedFiles& operator=(CopiedFiles&&) = delete;
  ~CopiedFiles();

  // Renaming or removing a file does not touch its bytes here.
  std::span<std::byte> file(std::size_t number) const { return files_[number]; }

 private:
  CopiedFiles() = default;
  void add(const std::filesystem::path& path, const StateImage::File& file, bool create);

  std::vector<std::span<std::byte>> files_;
};

}  // namespace hyperrun

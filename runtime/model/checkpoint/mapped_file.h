// A whole file, mapped for reading. Only the used parts of a checkpoint larger than memory are read.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>

namespace hyperrun {

class MappedFile {
 public:
  // Throws kMissingFile if the path does not exist, kBadCheckpoint if it cannot be read as a file.
  explicit MappedFile(const std::filesystem::path& path);
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  ~MappedFile();

  std::span<const std::byte> bytes() const { return {static_cast<const std::byte*>(data_), bytes_}; }

 private:
  void* data_ = nullptr;
  std::size_t bytes_ = 0;
};

}  // namespace hyperrun

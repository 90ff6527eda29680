// A whole file, mapped for reading: of a checkpoint that is larger than memory only what is used is read.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>

namespace hyperrun {

class MappedFile {
 public:
  // kMissingFile where nothing is there, kBadCheckpoint for what cannot be read as a file.
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

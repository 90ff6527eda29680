#include "runtime/device/copied_files.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>

#include "runtime/model/checkpoint/posix.h"

namespace hyperrun {

CopiedFiles CopiedFiles::create(const std::filesystem::path& folder, const StateImage& image) {
  CopiedFiles copy;
  for (const StateImage::File& file : image.files()) {
    copy.add(folder / file.name, file, true);
    std::ranges::copy(std::as_bytes(std::span(file.header)), copy.files_.back().begin());
  }
  return copy;
}

CopiedFiles CopiedFiles::open(const std::filesystem::path& folder, const StateImage& image) {
  CopiedFiles copy;
  for (const StateImage::File& file : image.files()) copy.add(folder / file.name, file, false);
  return copy;
}

CopiedFiles::~CopiedFiles() {
  for (const std::span<std::byte> file : files_) ::munmap(file.data(), file.size());
}

void CopiedFiles::add(const std::filesystem::path& path, const StateImage::File& file, bool create) {
  const posix::Descriptor fd(
      ::open(path.c_str(), create ? O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC : O_RDWR | O_CLOEXEC, 0600));
  if (!fd.valid()) posix::fail(Code::kUnwritable, "open", path);
  // Memory that is not there is found here: a store to a page without memory would kill the process.
  int error = 0;
  do error = create ? ::posix_fallocate(fd.get(), 0, file.bytes) : 0;
  while (error == EINTR);
  if (error != 0) {
    errno = error;
    posix::fail(Code::kUnwritable, "take memory for a copy of the state", path);
  }
  const auto bytes = static_cast<std::size_t>(file.bytes);
  void* data = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd.get(), 0);
  if (data == MAP_FAILED) posix::fail(Code::kUnwritable, "map", path);
  files_.emplace_back(static_cast<std::byte*>(data), bytes);
}

}  // namespace hyperrun

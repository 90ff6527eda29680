#include "runtime/model/checkpoint/mapped_file.h"

#include <sys/mman.h>
#include <sys/stat.h>

#include "runtime/model/checkpoint/lfs_pointer.h"
#include "runtime/model/checkpoint/posix.h"

namespace hyperrun {

MappedFile::MappedFile(const std::filesystem::path& path) {
  const posix::Descriptor fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!fd.valid() && (errno == ENOENT || errno == ENOTDIR))
    throw Error(Code::kMissingFile, "no such checkpoint file").at(path.string());
  if (!fd.valid()) posix::fail(Code::kBadCheckpoint, "open", path);
  struct stat status {};
  if (::fstat(fd.get(), &status) != 0) posix::fail(Code::kBadCheckpoint, "read", path);
  if (!S_ISREG(status.st_mode)) throw Error(Code::kBadCheckpoint, "not a regular file").at(path.string());
  if (status.st_size == 0) return;
  void* mapped =
      ::mmap(nullptr, static_cast<std::size_t>(status.st_size), PROT_READ, MAP_PRIVATE, fd.get(), 0);
  if (mapped == MAP_FAILED) posix::fail(Code::kBadCheckpoint, "map", path);
  data_ = mapped;
  bytes_ = static_cast<std::size_t>(status.st_size);
  try {
    refuse_lfs_pointer({static_cast<const char*>(data_), bytes_}, path, Code::kBadCheckpoint);
  } catch (const Error&) {  // no destructor runs after a constructor that throws
    ::munmap(data_, bytes_);
    throw;
  }
}

MappedFile::~MappedFile() {
  if (bytes_ > 0) ::munmap(data_, bytes_);
}

}  // namespace hyperrun

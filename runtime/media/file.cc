#include "runtime/media/file.h"

#include <fmt/core.h>
#include <xxhash.h>

#include <system_error>

#include "runtime/base/error.h"
#include "runtime/model/checkpoint/files.h"

namespace hyperrun {

namespace fs = std::filesystem;

namespace {

constexpr std::uintmax_t kMostBytes = std::uintmax_t{1} << 30;

}  // namespace

std::string read_media_file(const fs::path& path) {
  std::error_code not_there;  // read_file reports a missing file
  const std::uintmax_t bytes = fs::file_size(path, not_there);
  if (!not_there && bytes > kMostBytes)
    throw Error(Code::kBadCorpus, fmt::format("has {} bytes", bytes))
        .at(path.string())
        .legal("up to 1 GiB")
        .fix("name another file");
  return read_file(path, Code::kBadCorpus);
}

void write_media_file(const fs::path& path, std::string_view content) {
  std::error_code error;
  fs::create_directories(path.parent_path(), error);  // write_file says so where it fails
  write_file(path, content);
}

std::string xxh3(std::string_view content) {
  return fmt::format("{:016x}", XXH3_64bits(content.data(), content.size()));
}

}  // namespace hyperrun

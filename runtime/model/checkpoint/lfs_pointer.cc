#include "runtime/model/checkpoint/lfs_pointer.h"

#include <fmt/core.h>

#include <charconv>

namespace hyperrun {
namespace {

constexpr std::string_view kFirstLine = "version https://git-lfs.github.com/spec/";
constexpr std::string_view kSize = "\nsize ";
// The specification's limit for the text of a pointer.
constexpr std::size_t kMostBytes = 1024;

// The number with a comma before every three digits.
std::string grouped(std::int64_t number) {
  if (number < 1000) return fmt::format("{}", number);
  return fmt::format("{},{:03}", grouped(number / 1000), number % 1000);
}

}  // namespace

std::optional<std::int64_t> lfs_pointer_bytes(std::string_view content) {
  if (content.size() > kMostBytes || !content.starts_with(kFirstLine)) return std::nullopt;
  const std::size_t at = content.find(kSize);
  std::int64_t bytes = 0;
  if (at != std::string_view::npos)
    std::from_chars(content.data() + at + kSize.size(), content.data() + content.size(), bytes);
  return bytes;
}

void refuse_lfs_pointer(std::string_view content, const std::filesystem::path& path, Code code) {
  const std::optional<std::int64_t> bytes = lfs_pointer_bytes(content);
  if (!bytes) return;
  throw Error(code,
              fmt::format("it is a Git LFS pointer to a file of {} bytes, not the file", grouped(*bytes)))
      .at(path.string())
      .fix("fetch the file in its repository: git lfs install && git lfs pull");
}

}  // namespace hyperrun

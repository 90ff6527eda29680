#include "runtime/rank/token_file.h"

#include <cstring>
#include <string>

#include "runtime/base/error.h"
#include "runtime/model/checkpoint/files.h"

namespace hyperrun {

void write_tokens(const std::filesystem::path& path, std::span<const std::int32_t> tokens) {
  write_file(path, {reinterpret_cast<const char*>(tokens.data()), tokens.size_bytes()});
}

std::vector<std::int32_t> read_tokens(const std::filesystem::path& path) {
  const std::string content = read_file(path, Code::kBadCorpus);
  std::vector<std::int32_t> tokens(content.size() / sizeof(std::int32_t));
  std::memcpy(tokens.data(), content.data(), tokens.size() * sizeof(std::int32_t));
  return tokens;
}

}  // namespace hyperrun

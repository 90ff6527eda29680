// Texts, and what another program makes of them, as tools/tokenizer_reference.js writes them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace hyperrun {

struct ReferenceText {
  std::string text;
  std::vector<std::int32_t> ids;
  std::string decoded;
};

// The texts of a file and the results of another, in the same order.
std::vector<ReferenceText> read_reference(const std::filesystem::path& texts,
                                          const std::filesystem::path& expected);

// The texts alone.
std::vector<std::string> read_texts(const std::filesystem::path& texts);

}  // namespace hyperrun

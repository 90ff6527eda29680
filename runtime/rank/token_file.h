// The tokens of a corpus, written once by the controller and read by the first rank, as int32.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <vector>

namespace hyperrun {

void write_tokens(const std::filesystem::path& path, std::span<const std::int32_t> tokens);
std::vector<std::int32_t> read_tokens(const std::filesystem::path& path);

}  // namespace hyperrun

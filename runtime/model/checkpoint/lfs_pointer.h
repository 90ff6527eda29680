// Pointers of Git LFS: small texts that stand for large files in a repository whose files were not fetched.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string_view>

#include "runtime/base/error.h"

namespace hyperrun {

// The size of the file that `content` stands for; nullopt if it is no pointer.
std::optional<std::int64_t> lfs_pointer_bytes(std::string_view content);

// Throws an Error with `code` at `path` if `content`, the file's own, is a pointer.
void refuse_lfs_pointer(std::string_view content, const std::filesystem::path& path, Code code);

}  // namespace hyperrun

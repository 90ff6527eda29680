// Weights in formats of other programs, which are told apart to say how they are converted.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>

namespace hyperrun {

// Throws kBadCheckpoint if the bytes of `file` are those of PyTorch or of llama.cpp (GGUF).
void refuse_foreign_file(std::span<const std::byte> bytes, const std::filesystem::path& file);

// Throws kMissingFile for a folder without weights in safetensors, or kBadCheckpoint if it has weights of
// another format. Both say what to do.
[[noreturn]] void refuse_folder(const std::filesystem::path& folder);

}  // namespace hyperrun

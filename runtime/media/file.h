// Files of samples: they are read whole, identified by their hash, and written whole or not at all.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace hyperrun {

// The whole file. kMissingFile: nothing is there. kBadCorpus: no regular file, larger than a GiB, or it
// cannot be read.
std::string read_media_file(const std::filesystem::path& path);

// Writes a file under another name beside its place, then renames it; makes the folders above. kUnwritable.
void write_media_file(const std::filesystem::path& path, std::string_view content);

// XXH3 of 64 bits with seed 0 as 16 lower-case hexadecimal digits: what `xxhsum -H3` prints.
std::string xxh3(std::string_view content);

}  // namespace hyperrun

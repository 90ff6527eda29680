// The text that a model is trained on, and the stream of tokens that it becomes.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/model/text/tokenizer.h"

namespace hyperrun {

// Reads a text file, or the .txt files of a directory with `between` between them. Files are in the order of
// their names, with numbers by value, so chapter_9 comes before chapter_10. kMissingFile: nothing there.
// kBadCorpus: empty, or neither a file nor a directory with .txt files.
std::string read_corpus(const std::filesystem::path& path, std::string_view between = kEndOfText);

// Refuses a corpus that is too short for one sample of `sequence` + 1 tokens: kBadCorpus at `place`, with the
// numbers of tokens that it has and needs.
void require_sample(std::span<const std::int32_t> tokens, std::int32_t sequence, const std::string& place);

}  // namespace hyperrun

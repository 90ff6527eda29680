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

struct Corpus {
  std::string text;
  std::vector<std::string> notes;  // what was read otherwise than it is, and what was left out: lines to tell
};

// Reads a file (corpus_file.h), or those of a directory and of directories in it, with `between` between the
// documents. Files are in the order of their paths, with numbers by value, so chapter_9 comes before
// chapter_10. A file with an unknown extension is a text if it is given itself; in a directory it is left
// out, like hidden, empty and binary ones. kMissingFile: nothing there. kBadCorpus: empty, or no text.
Corpus read_corpus(const std::filesystem::path& path, std::string_view between = kEndOfText);

// Refuses a corpus that is too short for one sample of `sequence` + 1 tokens: kBadCorpus at `place`, with the
// numbers of tokens that it has and needs.
void require_sample(std::span<const std::int32_t> tokens, std::int32_t sequence, const std::string& place);

}  // namespace hyperrun

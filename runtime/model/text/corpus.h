// The text that a model is trained on, and the stream of tokens that it becomes.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "runtime/model/text/tokenizer.h"

namespace hyperrun {

// A text file as it is, or a directory: its .txt files in the order of their names (numbers by value,
// so chapter_9 comes before chapter_10) with kEndOfText between them.
// kMissingFile: nothing there. kBadCorpus: empty, or neither a file nor a directory with .txt files.
std::string read_corpus(const std::filesystem::path& path);

// Tokens of a corpus: the first part trains, the last `held_out` share evaluates.
class TokenStream {
 public:
  // Refuses a corpus with a part too short for one sample of `sequence` + 1 tokens: kBadCorpus at
  // `place`, with the tokens it has and needs. 0 <= held_out < 1.
  TokenStream(std::vector<std::int32_t> tokens, double held_out, std::int32_t sequence,
              const std::string& place);

  std::span<const std::int32_t> training() const { return std::span(tokens_).first(cut_); }
  std::span<const std::int32_t> held_out() const { return std::span(tokens_).subspan(cut_); }

 private:
  std::vector<std::int32_t> tokens_;
  std::size_t cut_;
};

}  // namespace hyperrun

// Added tokens of tokenizer.json: texts that are tokens wherever they occur, and that no word reaches across.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/model/text/char_trie.h"
#include "runtime/model/text/function_ref.h"
#include "runtime/model/text/normalizer.h"
#include "runtime/model/text/regex.h"
#include "runtime/model/text/vocabulary.h"

namespace hyperrun {

struct AddedToken {
  std::string content;
  std::int32_t id = -1;
  bool single_word = false;  // only where no character of a word touches it
  bool lstrip = false;       // takes white space before it in
  bool rstrip = false;       // and behind it
  bool normalized = false;   // is looked for in the normalized text, itself normalized
  bool special = false;
};

class AddedTokens {
 public:
  // Reads the list `added_tokens` of the file's root, and adds its tokens to `vocabulary`. `normalizer` may
  // be null.
  AddedTokens(const PipelineStep& root, const Normalizer* normalizer, Vocabulary& vocabulary);

  const std::vector<AddedToken>& list() const { return list_; }

  // A stretch of a text that is an added token, or none (id -1).
  using Sink = FunctionRef<void(std::string_view text, std::int32_t id)>;
  void split_raw(std::string_view text, Sink out) const { split(raw_, text, out); }
  void split_normalized(std::string_view text, Sink out) const { split(normalized_, text, out); }

 private:
  void read(const PipelineStep& step, Vocabulary& vocabulary);
  void split(const CharTrie& trie, std::string_view text, Sink out) const;
  bool is_alone(std::string_view text, TextRange found) const;

  std::vector<AddedToken> list_;
  CharTrie raw_, normalized_;  // by index in list_
  Regex word_;                 // matches a character of words
};

}  // namespace hyperrun

// Regular expressions as tokenizer.json has them, in the syntax of Oniguruma, matched by PCRE2.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "runtime/model/text/function_ref.h"

namespace hyperrun {

// A stretch of a text, in bytes.
struct TextRange {
  std::size_t begin = 0, end = 0;
  bool operator==(const TextRange&) const = default;
};

class Regex {
 public:
  // Oniguruma's syntax for Ruby, the one that Hugging Face's library uses. kBadCheckpoint at `place` where
  // the pattern is no regular expression, or has a construct whose meaning in PCRE2 is another.
  static Regex oniguruma(std::string_view pattern, const std::string& place);
  // Matches `text` and nothing else.
  static Regex literal(std::string_view text, const std::string& place);

  // The first match in `text` that begins at `from` or later. `text` must be valid UTF-8. kBadCheckpoint when
  // the pattern takes too many steps on this text.
  std::optional<TextRange> search(std::string_view text, std::size_t from) const;

  // All matches from left to right, and the stretches between them, which together are the text. A match may
  // be empty, but none that is empty touches the end of the one before. An empty text has none.
  void partition(std::string_view text, FunctionRef<void(TextRange, bool is_match)> out) const;

  // The text with each match replaced by `content` as it is.
  std::string replaced(std::string_view text, std::string_view content) const;

 private:
  Regex(std::string_view pattern, unsigned options, const std::string& source, const std::string& place);

  std::string place_;
  std::shared_ptr<const void> code_;  // a pcre2_code; matching does not change it
};

}  // namespace hyperrun

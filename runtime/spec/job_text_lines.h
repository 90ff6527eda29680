// Converts places in a text. Protobuf's tokenizer counts lines and columns from 0 and widens tabs to
// multiples of 8; people and editors count from 1, and a tab is one byte. Offsets in the text connect the
// two.
#pragma once

#include <string_view>
#include <vector>

#include "runtime/spec/job_source.h"

namespace hyperrun {

class TextLines {
 public:
  explicit TextLines(std::string_view text);

  std::string_view text() const { return text_; }
  std::size_t offset(int tokenizer_line, int tokenizer_column) const;
  Position position(std::size_t offset) const;

  // The start of `word`, looked for from `offset` backwards (forwards); `offset` when it is not found.
  std::size_t word_before(std::string_view word, std::size_t offset) const;
  std::size_t word_after(std::string_view word, std::size_t offset) const;

  // The field whose value is at `offset`: the last word before the ':'. "" when there is none.
  std::string_view field_of_value(std::size_t offset) const;

 private:
  std::string_view text_;
  std::vector<std::size_t> starts_;  // offsets of the lines
};

}  // namespace hyperrun

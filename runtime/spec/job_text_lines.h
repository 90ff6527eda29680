// Places in a text: protobuf's tokenizer counts lines and columns from 0 with tabs to multiples of 8,
// people and editors count both from 1 with a tab as one byte. Offsets are what both meet at.
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

  // Where `word` starts, looked for from `offset` backwards (forwards), `offset` itself when nowhere.
  std::size_t word_before(std::string_view word, std::size_t offset) const;
  std::size_t word_after(std::string_view word, std::size_t offset) const;

  // The field whose value stands at `offset`: the last word before ':' there. "" when there is none.
  std::string_view field_of_value(std::size_t offset) const;

 private:
  std::string_view text_;
  std::vector<std::size_t> starts_;  // of the lines
};

}  // namespace hyperrun

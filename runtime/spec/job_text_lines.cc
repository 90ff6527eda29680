#include "runtime/spec/job_text_lines.h"

#include <algorithm>

namespace hyperrun {
namespace {

constexpr std::string_view kWordCharacters =
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_";

}  // namespace

TextLines::TextLines(std::string_view text) : text_(text), starts_{0} {
  for (std::size_t i = 0; i < text.size(); ++i)
    if (text[i] == '\n') starts_.push_back(i + 1);
}

std::size_t TextLines::offset(int tokenizer_line, int tokenizer_column) const {
  auto line = static_cast<std::size_t>(std::max(tokenizer_line, 0));
  if (line >= starts_.size()) return text_.size();
  std::size_t at = starts_[line];
  for (int column = 0; column < tokenizer_column && at < text_.size() && text_[at] != '\n'; ++at)
    column = text_[at] == '\t' ? column - column % 8 + 8 : column + 1;
  return at;
}

Position TextLines::position(std::size_t offset) const {
  auto line = std::upper_bound(starts_.begin(), starts_.end(), offset) - starts_.begin();
  std::size_t start = starts_[static_cast<std::size_t>(line - 1)];
  return {static_cast<int>(line), static_cast<int>(offset - start + 1)};
}

std::size_t TextLines::word_before(std::string_view word, std::size_t offset) const {
  if (word.empty() || word.size() > offset) return offset;
  std::size_t found = text_.rfind(word, offset - word.size());
  return found == std::string_view::npos ? offset : found;
}

std::size_t TextLines::word_after(std::string_view word, std::size_t offset) const {
  std::size_t found = text_.find(word, offset);
  return found == std::string_view::npos ? offset : found;
}

std::string_view TextLines::field_of_value(std::size_t offset) const {
  std::string_view before = text_.substr(0, offset);
  std::size_t colon = before.rfind(':');
  if (colon == std::string_view::npos || colon == 0) return {};
  std::size_t last = before.find_last_of(kWordCharacters, colon);
  if (last == std::string_view::npos) return {};
  std::size_t stop = before.find_last_not_of(kWordCharacters, last);
  std::size_t first = stop == std::string_view::npos ? 0 : stop + 1;
  return before.substr(first, last + 1 - first);
}

}  // namespace hyperrun

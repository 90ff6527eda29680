// Reads and writes UTF-8, character by character.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace hyperrun {

struct Char {
  char32_t code = 0;
  std::size_t bytes = 1;
};

// The character at `at` (< text.size()). A byte that begins no valid sequence is a character of its own with
// code kInvalid. Overlong forms, surrogates and truncated sequences are invalid.
inline constexpr char32_t kInvalid = 0xFFFFFFFF;
Char char_at(std::string_view text, std::size_t at);

void append_utf8(std::string& out, char32_t code);

// The position of the first invalid byte; text.size() when there is none.
std::size_t find_invalid(std::string_view text);
bool is_utf8(std::string_view text);

// The text with each invalid byte replaced by U+FFFD.
std::string valid_utf8(std::string_view text);

}  // namespace hyperrun

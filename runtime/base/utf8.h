// Text in UTF-8, character by character.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace hyperrun {

struct Char {
  char32_t code = 0;
  std::size_t bytes = 1;
};

// The character at `at` (< text.size()). A byte that begins no valid sequence (overlong forms,
// surrogates and truncated sequences are invalid) is a character of its own with code kInvalid.
inline constexpr char32_t kInvalid = 0xFFFFFFFF;
Char char_at(std::string_view text, std::size_t at);

void append_utf8(std::string& out, char32_t code);

// Where the first invalid byte lies, text.size() when there is none.
std::size_t find_invalid(std::string_view text);
bool is_utf8(std::string_view text);

// Each invalid byte becomes U+FFFD.
std::string valid_utf8(std::string_view text);

}  // namespace hyperrun

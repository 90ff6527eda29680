// Just enough Unicode for cutting text into words: decoding UTF-8 and four classes of characters.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace hyperrun {

enum class CharClass : std::uint8_t { kLetter, kNumber, kSpace, kOther };

struct Char {
  char32_t code = 0;
  std::size_t bytes = 1;
};

// The character at `at` (< text.size()). A byte that begins no valid sequence (overlong forms,
// surrogates and truncated sequences are invalid) is a character of its own with code kInvalid.
inline constexpr char32_t kInvalid = 0xFFFFFFFF;
Char char_at(std::string_view text, std::size_t at);

// Letters are L*, numbers N*, spaces White_Space; kInvalid is kOther.
CharClass class_of(char32_t code);

void append_utf8(std::string& out, char32_t code);

// Where the first invalid byte lies, text.size() when there is none.
std::size_t find_invalid(std::string_view text);

// Each invalid byte becomes U+FFFD.
std::string valid_utf8(std::string_view text);

}  // namespace hyperrun

// The normal forms of Unicode, and white space.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace hyperrun {

// White_Space of Unicode.
bool is_blank(char32_t code);
// Bytes of white space at the front and at the end of a text in UTF-8.
std::size_t blank_bytes_at_front(std::string_view text);
std::size_t blank_bytes_at_end(std::string_view text);

// A normal form. Most of a text is in it already: only the characters between two that are inert are looked
// at by utf8proc.
class UnicodeForm {
 public:
  enum class Kind : std::uint8_t { kNfc, kNfd, kNfkc, kNfkd };

  static const UnicodeForm& get(Kind kind);

  void apply(std::string& text) const;  // valid UTF-8

 private:
  explicit UnicodeForm(Kind kind);

  // True for a character that stays itself, whatever stands before it, and begins something new.
  bool is_inert(char32_t code) const { return (inert_[code / 64] >> (code % 64) & 1) != 0; }
  void find_inert();
  std::string normalized(std::string_view text) const;

  Kind kind_;
  std::vector<std::uint64_t> inert_;  // a bit a code point
};

}  // namespace hyperrun

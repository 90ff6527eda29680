// Reads text that is known to be valid UTF-8, character by character, without checking it again.
#pragma once

#include <cstddef>
#include <string_view>

#include "runtime/base/utf8.h"

namespace hyperrun {

// The character at `at`, which must begin one.
inline Char valid_char_at(std::string_view text, std::size_t at) {
  const auto byte = [&](std::size_t i) {
    return static_cast<char32_t>(static_cast<unsigned char>(text[at + i]));
  };
  const char32_t lead = byte(0);
  if (lead < 0x80) return {lead, 1};
  const auto tail = [&](std::size_t i) { return byte(i) & 0x3F; };
  if (lead < 0xE0) return {(lead & 0x1F) << 6 | tail(1), 2};
  if (lead < 0xF0) return {(lead & 0x0F) << 12 | tail(1) << 6 | tail(2), 3};
  return {(lead & 0x07) << 18 | tail(1) << 12 | tail(2) << 6 | tail(3), 4};
}

}  // namespace hyperrun

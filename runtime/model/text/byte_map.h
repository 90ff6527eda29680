// GPT-2's printable form of bytes: tokenizer.json spells each byte as one character. Bytes that print
// in Latin-1 stand for themselves; the others, in order, become U+0100 and on.
#pragma once

#include <array>
#include <cstdint>

namespace hyperrun {

constexpr bool prints(int byte) {
  return (byte >= '!' && byte <= '~') || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
}

// The character of each byte.
inline constexpr std::array<char32_t, 256> kByteToChar = [] {
  std::array<char32_t, 256> table{};
  char32_t next = 0x100;
  for (int byte = 0; byte < 256; ++byte)
    table[static_cast<std::size_t>(byte)] = prints(byte) ? static_cast<char32_t>(byte) : next++;
  return table;
}();

// The byte of each character; -1: the character stands for no byte.
inline constexpr std::array<std::int16_t, 0x144> kCharToByte = [] {
  std::array<std::int16_t, 0x144> table{};
  table.fill(-1);
  for (int byte = 0; byte < 256; ++byte)
    table[kByteToChar[static_cast<std::size_t>(byte)]] = static_cast<std::int16_t>(byte);
  return table;
}();

}  // namespace hyperrun

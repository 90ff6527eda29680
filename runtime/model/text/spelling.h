// The spelling of a token's bytes in tokenizer.json. Byte-level tokenizers have a character for each byte
// (byte_map.h). SentencePiece has text in which "▁" stands for a blank and "<0x0A>" for the byte 10.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace hyperrun {

std::string printable(std::string_view bytes);
// Appends the bytes that `text` spells; false when one of its characters stands for no byte.
bool to_bytes(std::string_view text, std::string& bytes);

std::string with_marks(std::string_view text);     // blanks to "▁"
std::string without_marks(std::string_view text);  // and back

std::string byte_name(unsigned char byte);  // "<0x0A>"
std::optional<unsigned char> byte_of_name(std::string_view name);

}  // namespace hyperrun

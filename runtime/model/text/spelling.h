// The spelling of a token's bytes in tokenizer.json. Byte-level tokenizers have a character for each byte
// (byte_map.h). SentencePiece has text in which "▁" stands for a blank and "<0x0A>" for the byte 10.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace hyperrun {

// The mark that stands for a blank in the tokens of SentencePiece.
inline constexpr std::string_view kBlankMark = "\u2581";

std::string printable(std::string_view bytes);
void append_printable(std::string_view bytes, std::string& out);
// Appends the bytes that `text` spells; false when one of its characters stands for no byte.
bool to_bytes(std::string_view text, std::string& bytes);

// The text with each `from` replaced by `to`.
std::string replaced(std::string_view text, std::string_view from, std::string_view to);

std::string byte_name(unsigned char byte);  // "<0x0A>"
// The byte of a name, whose digits may be small letters too; nullopt for what is none.
std::optional<unsigned char> byte_of_name(std::string_view name);

}  // namespace hyperrun

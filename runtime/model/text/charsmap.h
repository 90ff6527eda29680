// SentencePiece's table of normalizations, as tokenizer.json's step Precompiled has it: a trie of what is
// replaced, as a double array of darts-clone, and the replacements.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace hyperrun {

class Charsmap {
 public:
  // The bytes: a 32-bit number (little endian) of the trie's bytes, the trie's units of 32 bits, replacements
  // that end with a zero byte each. kBadCheckpoint at `place` when they are not.
  static Charsmap from_base64(std::string_view base64, const std::string& place);

  // Replaces as Hugging Face's library does: of a grapheme of at most 5 bytes the whole, else its characters
  // one by one; and what is replaced for both is what the shortest entry that they begin with says.
  void apply(std::string& text) const;

 private:
  Charsmap(std::vector<std::uint32_t> units, std::string replacements)
      : units_(std::move(units)), replacements_(std::move(replacements)) {}

  // What stands for `key`; nullopt when no entry is a prefix of it.
  std::optional<std::string_view> replacement(std::string_view key) const;

  std::vector<std::uint32_t> units_;
  std::string replacements_;
};

}  // namespace hyperrun

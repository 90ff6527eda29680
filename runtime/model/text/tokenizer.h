// Byte-pair encoding: text is cut into words (text/pretokenize.h), a word is a list of symbols, and the
// neighbours with the lowest rank are merged, again and again. Symbols are
// - bytes, in GPT-2 and Llama 3, or
// - characters, and the bytes of characters that are no tokens, in SentencePiece and Llama 2. These put a
//   blank before the text.
// Every byte is a token of its own, so decode() restores any text, valid UTF-8 or not.
//
// Tokenizers are files in the form of tokenizer.json of Hugging Face's tokenizers library, which gives the
// same ids.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "runtime/model/text/pretokenize.h"

namespace hyperrun {

// The token that ends a document. It stands for itself wherever it occurs in a text.
inline constexpr std::string_view kEndOfText = "<|endoftext|>";

// The mark that stands for a blank in the tokens of SentencePiece.
inline constexpr std::string_view kBlankMark = "\u2581";

// Two neighbours as one key; keys have the order of (left, right).
constexpr std::uint64_t pair_key(std::int32_t left, std::int32_t right) {
  return (static_cast<std::uint64_t>(left) << 32) | static_cast<std::uint32_t>(right);
}

// Two tokens that are merged into one.
struct Merge {
  std::int32_t left, right, result;
  bool operator==(const Merge&) const = default;
};

// The data of a tokenizer.
struct TokenizerParts {
  enum class Symbols : std::uint8_t { kBytes, kCharacters };

  std::vector<std::string> tokens;           // bytes of each token, by id
  std::vector<Merge> merges;                 // in the order of their rank
  std::vector<std::int32_t> special;         // tokens that are matched as a whole, never merged
  std::array<std::int32_t, 256> byte_ids{};  // the token of each byte
  std::int32_t end_of_text = 0;              // ends a document
  std::int32_t begin_of_text = -1;           // goes before a document or a prompt; -1: there is none
  Symbols symbols = Symbols::kBytes;
  Words words = Words::kGpt2;
  bool whole_words = false;  // a word that is a token is that token, whatever the merges would make of it

  bool operator==(const TokenizerParts&) const = default;
};

class Tokenizer {
 public:
  static constexpr std::int32_t kMinVocab = 257;  // 256 bytes and kEndOfText

  // Trains on `text` to at most `vocab_size` tokens; fewer when no pair occurs twice any more.
  // kBadValue when vocab_size < kMinVocab. The same text gives the same tokenizer, always: the more
  // frequent pair is merged first, of equals the one with the smaller ids. Ids: kEndOfText is 0, the
  // bytes follow in the order of their printable forms, then the merges as they were found.
  static Tokenizer train(std::string_view text, std::int32_t vocab_size);

  // The caller (training, a validated file) guarantees that `parts` are consistent. With characters for
  // symbols, words are cut where no token crosses, which changes no id.
  explicit Tokenizer(TokenizerParts parts);

  const TokenizerParts& parts() const { return parts_; }
  std::int32_t vocab_size() const { return static_cast<std::int32_t>(parts_.tokens.size()); }
  std::int32_t end_of_text() const { return parts_.end_of_text; }
  std::int32_t begin_of_text() const { return parts_.begin_of_text; }
  const std::vector<std::string>& tokens() const { return parts_.tokens; }
  const std::string& token(std::int32_t id) const { return parts_.tokens[static_cast<std::size_t>(id)]; }
  const std::vector<Merge>& merges() const { return parts_.merges; }

  // The ids of a text, without begin_of_text.
  std::vector<std::int32_t> encode(std::string_view text) const;
  // The text of `ids`. An id outside [0, vocab_size) becomes U+FFFD, because a model's vocabulary may be
  // larger than ours. A begin_of_text at the front and the blank that encode() put there are left out.
  std::string decode(std::span<const std::int32_t> ids) const;

  bool operator==(const Tokenizer& o) const { return parts_ == o.parts_; }

 private:
  struct Ranked {
    std::int32_t rank, result;
  };

  std::int32_t special_at(std::string_view text, std::size_t at) const;  // -1: none begins there
  void encode_plain(std::string_view text, std::vector<std::int32_t>& out) const;
  void encode_word(std::string_view word, std::vector<std::int32_t>& out) const;
  std::vector<std::int32_t> symbols_of(std::string_view word) const;

  TokenizerParts parts_;
  std::unordered_map<std::uint64_t, Ranked> ranks_;    // merges by pair_key(left, right)
  std::unordered_map<std::string, std::int32_t> ids_;  // ids of tokens that are neither special nor bytes
};

// Reads and writes a tokenizer.json of the form of GPT-2, Llama 2 or Llama 3. Reading refuses settings for
// which Hugging Face's library would give other ids (another model, normalizer or pre-tokenizer):
// kBadCheckpoint with the field; kMissingFile.
Tokenizer read_tokenizer(const std::filesystem::path& path);
void write_tokenizer(const Tokenizer& tokenizer, const std::filesystem::path& path);

}  // namespace hyperrun

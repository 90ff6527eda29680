// Byte-level byte-pair encoding as GPT-2 has it: text is cut into words (text/pretokenize.h), a word
// is its bytes, and the most frequent neighbours were merged, one merge a token. Every byte is a token
// of its own, so any text, valid UTF-8 or not, comes back from decode() as it was.
//
// Written and read as tokenizer.json of Hugging Face's tokenizers library, which gives the same ids.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace hyperrun {

// Ends a document. Stands for itself wherever it occurs in a text.
inline constexpr std::string_view kEndOfText = "<|endoftext|>";

// Two neighbours as one key; keys order as (left, right) do.
constexpr std::uint64_t pair_key(std::int32_t left, std::int32_t right) {
  return (static_cast<std::uint64_t>(left) << 32) | static_cast<std::uint32_t>(right);
}

class Tokenizer {
 public:
  static constexpr std::int32_t kMinVocab = 257;  // 256 bytes and kEndOfText

  // Trains on `text` to at most `vocab_size` tokens; fewer when no pair occurs twice any more.
  // kBadValue when vocab_size < kMinVocab. The same text gives the same tokenizer, always: the more
  // frequent pair is merged first, of equals the one with the smaller ids. Ids: kEndOfText is 0, the
  // bytes follow in the order of their printable forms, then the merges as they were found.
  static Tokenizer train(std::string_view text, std::int32_t vocab_size);

  struct Merge {
    std::int32_t left, right, result;
    bool operator==(const Merge&) const = default;
  };

  // tokens[id] is the id's bytes; ids of `special` are matched as a whole, never merged. Merges come in
  // the order of their rank. The caller (training, a validated file) answers for consistency.
  Tokenizer(std::vector<std::string> tokens, std::vector<Merge> merges, std::vector<std::int32_t> special);

  std::int32_t vocab_size() const { return static_cast<std::int32_t>(tokens_.size()); }
  std::int32_t end_of_text() const { return end_of_text_; }

  std::vector<std::int32_t> encode(std::string_view text) const;
  // An id outside [0, vocab_size) becomes U+FFFD: a model's vocabulary may be larger than ours.
  std::string decode(std::span<const std::int32_t> ids) const;

  const std::vector<std::string>& tokens() const { return tokens_; }
  const std::vector<Merge>& merges() const { return merges_; }
  const std::vector<std::int32_t>& special() const { return special_; }

  bool operator==(const Tokenizer& o) const {
    return tokens_ == o.tokens_ && merges_ == o.merges_ && special_ == o.special_;
  }

 private:
  struct Ranked {
    std::int32_t rank, result;
  };

  std::int32_t special_at(std::string_view text, std::size_t at) const;  // -1: none begins there
  void encode_plain(std::string_view text, std::vector<std::int32_t>& out) const;
  void encode_word(std::string_view word, std::vector<std::int32_t>& out) const;

  std::vector<std::string> tokens_;
  std::vector<Merge> merges_;
  std::vector<std::int32_t> special_;
  std::int32_t end_of_text_ = -1;
  std::array<std::int32_t, 256> byte_id_{};
  std::unordered_map<std::uint64_t, Ranked> ranks_;  // pair_key(left, right) to the merge
};

// tokenizer.json. Reading refuses what would give other ids than Hugging Face's library does
// (another model, normalizer or pre-tokenizer): kBadCheckpoint with the field; kMissingFile.
Tokenizer read_tokenizer(const std::filesystem::path& path);
void write_tokenizer(const Tokenizer& tokenizer, const std::filesystem::path& path);

}  // namespace hyperrun

// Byte-pair encoding: a word is a list of symbols, its characters, and the neighbours whose merge has the
// lowest rank become one, again and again.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/model/text/flat_map.h"
#include "runtime/model/text/pair_ranks.h"
#include "runtime/model/text/token_model.h"

namespace hyperrun {

// Two neighbours as one key; keys have the order of (left, right).
constexpr std::uint64_t pair_key(std::int32_t left, std::int32_t right) {
  return (static_cast<std::uint64_t>(left) << 32) | static_cast<std::uint32_t>(right);
}

class Bpe : public TokenModel {
 public:
  // Two tokens that are merged into one.
  struct Merge {
    std::int32_t left, right, result;
    bool operator==(const Merge&) const = default;
  };
  // What becomes of characters that are no tokens: the tokens of their bytes if `byte_fallback` and all are
  // there, else `unk`, else nothing.
  struct Options {
    std::string prefix, suffix;  // of symbols that do not begin a word, and of those that end one
    std::int32_t unk = -1;
    bool fuse_unk = false;  // unknown characters in a row are one token
    bool byte_fallback = false;
    bool whole_words = false;  // a word that is a token is that token, whatever the merges would make of it
  };

  // `merges` in the order of their ranks, at most PairRanks::kMostRanks. Of two merges of one pair the later
  // counts.
  Bpe(std::shared_ptr<const Vocabulary> vocabulary, const std::vector<Merge>& merges, Options options);

  void encode(std::string_view word, std::vector<std::int32_t>& out) const override;
  std::size_t first_part(std::string_view word) const override;

 private:
  struct Scratch;

  void find_characters();
  void find_inner_pairs(const std::vector<Merge>& merges);
  void add_symbols(std::string_view word, std::vector<std::int32_t>& out) const;
  std::int32_t symbol(std::string_view character, bool first, bool last, std::string& spelled) const;
  bool add_bytes(std::string_view symbol, std::vector<std::int32_t>& out) const;
  void merge(Scratch& scratch) const;

  std::shared_ptr<const Vocabulary> vocabulary_;
  PairRanks ranks_;
  std::vector<std::int32_t> results_;  // by rank
  Options options_;
  std::vector<std::int32_t> characters_;  // tokens of single characters, by code point; -1: none
  std::array<std::int32_t, 256> bytes_{};
  FlatMap<bool> inner_pairs_;  // characters, as pair_key, between which something is merged
  bool cuts_ = false;          // words may be cut between others
};

ReadModel read_bpe(const PipelineStep& step);

}  // namespace hyperrun

// The unigram model of SentencePiece: each token has a score, the logarithm of its probability, and a word is
// cut into the tokens with the largest sum of scores.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "runtime/model/text/flat_map.h"
#include "runtime/model/text/token_model.h"

namespace hyperrun {

class Unigram : public TokenModel {
 public:
  // `scores` by id. `unk`: the token of characters that are in no token, -1: there is none and they are an
  // error. With `byte_fallback` they are the tokens of their bytes where all are there.
  struct Options {
    std::int32_t unk = -1;
    bool byte_fallback = false;
    std::string place;  // of the field that names unk, for errors
  };
  Unigram(std::shared_ptr<const Vocabulary> vocabulary, std::vector<double> scores, Options options);

  void encode(std::string_view word, std::vector<std::int32_t>& out) const override;

 private:
  // The best way to a place in the word: its last token begins at `begin`.
  struct Node {
    double score = 0;
    std::int64_t begin = -1;  // -1: there is no way yet
    std::int32_t id = -1;
  };

  void add_to_trie(std::string_view token, std::int32_t id);
  std::vector<Node> best_paths(std::string_view word) const;
  void add_piece(std::string_view piece, std::vector<std::int32_t>& out) const;

  std::shared_ptr<const Vocabulary> vocabulary_;
  std::vector<double> scores_;
  Options options_;
  double unk_score_ = 0;
  std::vector<std::int32_t> token_at_;  // by node of the trie; -1: no token ends there
  FlatMap<std::uint32_t> children_;     // node * 256 + byte to node
};

ReadModel read_unigram(const PipelineStep& step);

}  // namespace hyperrun

// Where a model of text begins and ends: the tokens come in, with the tables of the vocabulary; from the
// state behind the layers a loss goes out, log probabilities, or one more token.
#pragma once

#include <string>
#include <vector>

#include "runtime/model/graph/builder.h"

namespace hyperrun {

class TokenIo {
 public:
  // `saved_as`: where a checkpoint has the embedding. What neither begins nor ends a model has neither tokens
  // nor tables.
  TokenIo(Builder& builder, const std::string& saved_as);

  // The rows of the tokens, to which those of features are added where a position has some.
  TensorId embedded(const std::string& out) const;

  TensorId embed() const { return embed_; }
  // `further`: 0 for the model's, 1 for those of the first module that predicts further, ...
  TensorId targets(int further) const { return targets_[static_cast<std::size_t>(further)]; }

  TensorId positions() const;  // of the tokens, in their text

  // What the end needs of the state behind the layers: all of it, or the row of the last token.
  TensorId last(TensorId x) const;
  // Of the same, normed: the reported loss, log probabilities, or the token.
  void end(TensorId x) const;
  // x, normed -> the cross entropy of a text, summed up and times `factor`. `at` is empty or ends with a
  // point.
  TensorId loss(const std::string& at, TensorId x, TensorId targets, double factor) const;

 private:
  // What is known of each row's softmax: its own part's, and of the whole vocabulary.
  struct Softmax {
    TensorId sum, max, target;
  };

  void load_requests(const Tensor& ids);
  void load_samples(const Tensor& ids);
  void load_batch(const Tensor& ids);
  Softmax softmax(const std::string& at, TensorId x, TensorId targets, double scale) const;
  TensorId log_probs(TensorId x) const;
  TensorId log_probs(const Softmax& of) const;
  void texts_loss(TensorId x) const;
  void policy_loss(TensorId logp) const;
  void sample(TensorId x) const;

  Builder& b_;
  TensorId ids_, embed_, head_;
  std::vector<TensorId> targets_;
  std::vector<TensorId>
      trained_by_;                  // of texts: weight; of a policy: advantage, behaviour, reference as well
  std::vector<TensorId> features_;  // of each its rows at the positions
};

}  // namespace hyperrun

// Builds the begin and the end of a text model. At the begin it loads tokens and looks up the embedding. At
// the end it turns the state behind the layers into a loss, log probabilities, or the next token.
#pragma once

#include <string>
#include <vector>

#include "runtime/model/graph/builder.h"

namespace hyperrun {

class TokenIo {
 public:
  // `saved_as`: the name of the embedding in a checkpoint. A submodel that neither begins nor ends a model
  // has neither tokens nor tables.
  TokenIo(Builder& builder, const std::string& saved_as);

  // The embedding's rows of the tokens, plus rows of features at positions that have some.
  TensorId embedded(const std::string& out) const;

  TensorId embed() const { return embed_; }
  // The targets of the model (`further` = 0), or of module `further` of multi-token prediction (1, 2, ...).
  TensorId targets(int further) const { return targets_[static_cast<std::size_t>(further)]; }

  TensorId positions() const;  // the tokens' positions in their text

  // The part of the state behind the layers that the end needs: all of it, or the row of the last token.
  TensorId last(TensorId x) const;
  // Builds the outputs from that state, normed: the loss, log probabilities, or the token.
  void end(TensorId x) const;
  // x, normed -> the sum of the cross entropy of a text, times `factor`. `at` is empty or ends with a point.
  TensorId loss(const std::string& at, TensorId x, TensorId targets, double factor) const;

 private:
  // The sum, the maximum and the target's logit of each row's softmax, over the whole vocabulary.
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
  std::vector<TensorId> trained_by_;  // given texts: weight; a policy also: advantage, behaviour, reference
  std::vector<TensorId> features_;    // by encoder: the rows of features at the positions
};

}  // namespace hyperrun

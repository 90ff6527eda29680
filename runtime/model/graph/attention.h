// The attention of a decoder's layers: grouped queries, or keys and values from a compressed state.
#pragma once

#include <string>

#include "runtime/model/graph/builder.h"

namespace hyperrun {

// Of heads [batch, seq, kv_heads, group, head_dim] and of keys and values without groups: what each head
// makes of the values that it sees (Builder::causal), those in the cache of a generation among them.
TensorId attend(Builder& builder, const std::string& at, TensorId q, TensorId k, TensorId v);

class AttentionBlock {
 public:
  // With the tables that all layers share.
  explicit AttentionBlock(Builder& builder);

  // To generate: by which it turns.
  void set_positions(TensorId positions);

  // x, normed -> what is added to the residual stream. `at` and `hf` end with a point.
  TensorId operator()(const std::string& at, const std::string& hf, TensorId x) const;

 private:
  struct Heads {
    TensorId q, k, v;  // q and k turned
  };
  Heads grouped(const std::string& at, const std::string& hf, TensorId x) const;
  Heads latent(const std::string& at, const std::string& hf, TensorId x) const;
  TensorId turned(const std::string& name, TensorId x, const std::string& out) const;

  Builder& b_;
  DimId value_dim_;                                 // of v
  DimId q_rank_, kv_rank_, nope_dim_, turned_dim_;  // of latent attention; turned_dim_ of both
  TensorId table_;
};

}  // namespace hyperrun

// The attention of a decoder's layers: grouped queries, or keys and values from a compressed state.
#pragma once

#include <string>

#include "runtime/model/graph/builder.h"

namespace hyperrun {

// Attention of queries [batch, seq, kv_heads, group, head_dim] over keys and values without groups: the
// result of each head. Builder::causal says which positions a query sees; in a generation the cache's are
// among them.
TensorId attend(Builder& builder, const std::string& at, TensorId q, TensorId k, TensorId v);

class AttentionBlock {
 public:
  // Adds the rotary tables that all layers share.
  explicit AttentionBlock(Builder& builder);

  // For generation: sets the positions of the rotary tables.
  void set_positions(TensorId positions);

  // x, normed, and the residual stream -> the residual stream behind attention. `at` and `hf` end with a
  // point.
  TensorId operator()(const std::string& at, const std::string& hf, TensorId x, TensorId stream) const;

 private:
  struct Heads {
    TensorId q, k, v;  // q and k have rotary positions
  };
  Heads grouped(const std::string& at, const std::string& hf, TensorId x) const;
  Heads latent(const std::string& at, const std::string& hf, TensorId x) const;
  TensorId turned(const std::string& name, TensorId x, const std::string& out) const;

  Builder& b_;
  DimId value_dim_;                    // width of v
  DimId q_rank_, kv_rank_, nope_dim_;  // latent attention only
  DimId turned_dim_;                   // the part of a head with rotary positions
  TensorId table_;
};

}  // namespace hyperrun

// A model of llama2.c: the layout of its weights, its files, its forward pass. An importer is compared with
// it. It is written from the description of the format, without code of runtime/.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace hyperrun::testing {

struct Llama2cModel {
  std::int32_t dim = 16, hidden_dim = 40, n_layers = 2, n_heads = 4, n_kv_heads = 2, vocab_size = 66,
               seq_len = 16;
  bool shared_classifier = false;
  // Each array has the weights of all layers, one after the other.
  std::vector<float> embedding, rms_att, wq, wk, wv, wo, rms_ffn, w1, w2, w3, rms_final, classifier;

  std::int32_t head_size() const { return dim / n_heads; }
  std::int32_t kv_dim() const { return n_kv_heads * head_size(); }

  void fill(std::uint32_t seed);  // all weights, at random

  std::string file(int version) const;  // 0 or 1

  // The logits after each token in double, [tokens][vocab_size].
  std::vector<std::vector<double>> forward(std::span<const std::int32_t> tokens) const;
};

// Turns the neighbours 2i and 2i + 1 of each head of `x`.
void turn_neighbours(std::span<double> x, std::int32_t head_size, std::int64_t position);

}  // namespace hyperrun::testing

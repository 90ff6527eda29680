// The .bin files of llama2.c, in float32 and little-endian.
//
//   version 0   7 int32: dim, hidden_dim, n_layers, n_heads, n_kv_heads, vocab_size, seq_len; a negative
//               vocab_size says that the head is not the embedding
//               embedding; of all layers the attention's norms, then their wq, and so on wk, wv, wo, the
//               norms of the feed-forward, w1, w2, w3; the last norm; cosines and sines that nobody reads
//               (seq_len x head_dim / 2 each); the head, if it has one of its own
//   version 1   "ak42" as uint32, 1, the 7 int32, a byte that says whether the head is the embedding,
//               zeros up to byte 256
//               the norms of the attention, of the feed-forward, the last norm; embedding; wq, wk, wv, wo,
//               w1, w2, w3; the head
//
// Version 2 holds int8 and is refused. The model is a Llama whose rotary positions turn neighbours, elements
// 2i and 2i + 1 of a head. Those of Hugging Face, and ours, turn i and i + head_dim / 2. Therefore the rows
// of wq and wk are permuted; a head's scores do not change, because they are sums over its elements.
#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

#include "runtime/ir/job.h"
#include "runtime/model/checkpoint/mapped_file.h"
#include "runtime/model/checkpoint/safetensors.h"

namespace hyperrun {

class Llama2cFile {
 public:
  // kMissingFile; kBadCheckpoint for another format or version, impossible values ("PATH: dim"), and a size
  // that is not that of the model in the header.
  explicit Llama2cFile(const std::filesystem::path& path);

  const ModelSpec& model() const { return model_; }

  // Writes the weights as model.safetensors under Hugging Face's names. kUnwritable.
  void write_safetensors(const std::filesystem::path& path) const;

 private:
  struct Tensor {
    TensorInfo info;
    std::int64_t begin;  // its first byte in the file
    bool rotary;         // its rows belong to heads with rotary positions
  };

  void read_header(const std::string& place);
  void lay_out_version_0();
  void lay_out_version_1();
  void add(std::string name, std::vector<std::int64_t> shape, bool rotary = false);
  void add_layers(const char* name, const std::vector<std::int64_t>& shape, bool rotary = false);
  void add_attention();
  void add_feed_forward();
  void check_size(const std::string& place) const;

  MappedFile file_;
  ModelSpec model_;
  int version_ = 0;
  std::vector<Tensor> tensors_;
  std::int64_t end_ = 0;  // end of the tensors placed so far
};

}  // namespace hyperrun

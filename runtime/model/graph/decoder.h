// Builds decoders like Llama: RMS norm before each block, rotary positions, attention, SwiGLU or experts, no
// biases. Weights have the layout of Hugging Face's checkpoints ([out, in]; heads as kv_heads x group).
#pragma once

#include <string_view>

#include "runtime/model/graph/model.h"

namespace hyperrun {

// The names of an expert's matrices in a checkpoint.
struct ExpertNames {
  std::string_view gate = "gate_proj", up = "up_proj", down = "down_proj";
};

struct DecoderTraits {
  bool qk_norm = false;           // queries and keys are normed, head by head, before rotary positions
  bool turns_neighbours = false;  // pairs of rotary positions are neighbours, not one element of each half
  std::string_view experts_in = "mlp.";  // the block of experts in a checkpoint
  ExpertNames expert_names = {};
};

Graph build_decoder(const ModelSpec& model, const ModelUse& use, const DecoderTraits& traits);

}  // namespace hyperrun

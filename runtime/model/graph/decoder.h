// What decoders in the manner of Llama have in common: RMS norm before each block, rotary positions,
// attention, SwiGLU or experts, no biases. Weights lie as Hugging Face stores them ([out, in]; heads as
// kv_heads x group).
#pragma once

#include <string_view>

#include "runtime/model/graph/model.h"

namespace hyperrun {

// Of an expert's matrices in a checkpoint.
struct ExpertNames {
  std::string_view gate = "gate_proj", up = "up_proj", down = "down_proj";
};

struct DecoderTraits {
  bool qk_norm = false;           // queries and keys are normed, head by head, before they are turned
  bool turns_neighbours = false;  // pairs of rotary positions are neighbours, not of a head's two halves
  std::string_view experts_in = "mlp.";  // the block that a checkpoint has experts in
  ExpertNames expert_names = {};
};

Graph build_decoder(const ModelSpec& model, const ModelUse& use, const DecoderTraits& traits);

}  // namespace hyperrun

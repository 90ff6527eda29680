// What decoders in the manner of Llama have in common: RMS norm before each block, rotary positions,
// grouped-query attention, SwiGLU, no biases. Weights lie as Hugging Face stores them ([out, in]; heads as
// kv_heads x group).
#pragma once

#include "runtime/model/graph/model.h"

namespace hyperrun {

struct DecoderTraits {
  bool qk_norm = false;  // queries and keys are normed, head by head, before they are turned
};

Graph build_decoder(const ModelSpec& model, const ModelUse& use, const DecoderTraits& traits);

}  // namespace hyperrun

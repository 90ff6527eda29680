// Builds decoders like Llama: RMS norm before each block, rotary positions, attention, SwiGLU or experts.
// ModelFamily says in what they differ. Weights have the layout of Hugging Face's checkpoints ([out, in];
// heads as kv_heads x group).
#pragma once

#include "runtime/ir/families.h"
#include "runtime/model/graph/model.h"

namespace hyperrun {

Graph build_decoder(const ModelSpec& model, const ModelUse& use, const ModelFamily& family);

}  // namespace hyperrun

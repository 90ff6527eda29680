// Builds encoders of pictures or sounds like ViT. Vectors of patches or frames are mapped to the hidden
// width, and learned positions are added. Blocks of GPT-2 follow, in which every token sees every other. A
// norm and a linear map to the width of the text model are last. Weights have the names and the layout ([out,
// in]) of Hugging Face's ViT, where it has such weights.
#pragma once

#include "runtime/model/graph/model.h"

namespace hyperrun {

// An encoder is always a submodel, with ports.
Graph build_encoder(const ModelSpec& model, const ModelUse& use);

}  // namespace hyperrun

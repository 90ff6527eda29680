// An encoder of pictures or sounds in the manner of ViT: vectors of patches or frames are mapped to the
// hidden width, learned positions are added, and blocks as GPT-2's follow, in which every token sees every
// other; then a norm, and a linear map to what a text model takes. Weights are called as Hugging Face's ViT
// has them where it has their like, and lie as there ([out, in]).
#pragma once

#include "runtime/model/graph/model.h"

namespace hyperrun {

// Always a sub-model.
Graph build_encoder(const ModelSpec& model, const ModelUse& use);

}  // namespace hyperrun

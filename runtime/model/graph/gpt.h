// Builds GPT-2: learned positions, a centered norm with a bias before each block, attention with as many
// heads of keys as of queries, GELU, a bias on every product of the layers. There is no dropout. Weights have
// the layout of Hugging Face's Conv1D, [in, out]; those of queries, keys and values are one matrix, joined
// along [out].
#pragma once

#include "runtime/model/graph/model.h"

namespace hyperrun {

Graph build_gpt2(const ModelSpec& model, const ModelUse& use);

}  // namespace hyperrun

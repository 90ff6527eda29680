#pragma once

#include "runtime/ir/graph.h"

namespace hyperrun {

// Rewrites a sharded graph for recomputation: the backward pass computes again the activations that the
// layers' policies do not keep. Tensors between layers are always kept. No bit of any value changes.
//
//   full       a layer keeps only its input; its products and collectives are repeated (Chen et al. 2016)
//   selective  outputs of cheap operators (norms, SwiGLU) are computed again: those that need no product and
//              no collective, are as large as the inputs, and whose inputs are kept anyway. This is in the
//              spirit of Korthikanti et al. 2022, whose attention core our attention never keeps.
void recompute(Graph& graph, const std::vector<RecomputeSpec>& specs);

}  // namespace hyperrun

#pragma once

#include "runtime/ir/graph.h"

namespace hyperrun {

// Rewrites a sharded graph so that the backward pass computes again what the layers' policies do not keep.
// What goes from layer to layer is always kept. The values are, bit by bit, those that would have been kept.
//
//   full       of a layer only its input is kept; products and messages are repeated (Chen et al. 2016)
//   selective  an output that is as large as its inputs, which are kept anyway, and takes no product and no
//              message: norms, SwiGLU (in the spirit of Korthikanti et al. 2022, whose attention core this
//              attention never keeps)
void recompute(Graph& graph, const std::vector<RecomputeSpec>& specs);

}  // namespace hyperrun

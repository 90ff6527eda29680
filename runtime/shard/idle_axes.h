// Mesh axes whose devices do the same work.
#pragma once

#include "runtime/ir/graph.h"

namespace hyperrun {

// The axes of more than one device over which a sharded training splits no product of its forward pass: no
// matrix product and no attention. What is kept in parts along such an axis (ZeRO) is gathered for each use,
// so every device along it computes the same.
AxisSet idle_axes(const Graph& training, const Mesh& mesh);

}  // namespace hyperrun

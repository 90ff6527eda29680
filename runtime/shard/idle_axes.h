// Idle mesh axes: all devices along them do the same work.
#pragma once

#include "runtime/ir/graph.h"

namespace hyperrun {

// The axes with several devices that split no matrix product and no attention of the forward pass. State may
// be split along such an axis (ZeRO), but it is gathered for each use, so every device along it computes the
// same.
AxisSet idle_axes(const Graph& training, const Mesh& mesh);

}  // namespace hyperrun

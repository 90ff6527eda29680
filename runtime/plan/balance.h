// Stages of unequal layers, so that all devices of a pipeline have about the same to do.
#pragma once

#include <optional>

#include "runtime/ir/job.h"
#include "runtime/plan/pieces.h"
#include "runtime/plan/strategy.h"

namespace hyperrun {

// The strategy with the lead and tail whose longest device is shortest: the layers before it and behind it
// weigh what they take. Nothing where even stages are as good.
std::optional<Strategy> balanced(const Strategy& strategy, const ModelSpec& model, const Pieces& pieces);

}  // namespace hyperrun

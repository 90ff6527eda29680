// Balanced pipelines: stages of unequal layers, so that all devices have about equal work although the first
// also has the embedding and the last the head.
#pragma once

#include <optional>

#include "runtime/ir/job.h"
#include "runtime/plan/layer_profile.h"
#include "runtime/plan/strategy.h"

namespace hyperrun {

// The strategy with the shortfalls that minimise the time of the slowest device, by the times of the profile.
// nullopt if even stages are as good.
std::optional<Strategy> balanced(const Strategy& strategy, const ModelSpec& model,
                                 const StepProfile& profile);

}  // namespace hyperrun

#pragma once

#include "runtime/ir/job.h"

namespace hyperrun {

// The share of a step in which the devices of a pipeline of so many devices wait for each other, on average,
// if a layer's forward pass takes 1, each half of its backward pass 1, and messages nothing.
double idle_share(const PipelineSpec& pipeline, int devices, int micro_batches);

}  // namespace hyperrun

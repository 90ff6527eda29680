#pragma once

#include "runtime/ir/job.h"

namespace hyperrun {

// The bubble of a pipeline as a share of the step, on average over its devices. A layer's forward pass takes
// 1, each half of its backward pass 1, and messages take no time.
double idle_share(const PipelineSpec& pipeline, int devices, int micro_batches);

}  // namespace hyperrun

// Execution to scale: a job whose model is too large for the host runs with a smaller model of the same
// structure. Each instruction takes as long as in the original.
#pragma once

#include "runtime/ir/job.h"

namespace hyperrun {

// The job with its layers divided by `depth`, else unchanged: the original that the execution imitates. All
// pipeline stages lose the same share of layers.
Job with_fewer_layers(const Job& job);

// The job with all sizes divided: the one that is executed. Heads, experts, choices and the parallelism stay
// unchanged, so that both jobs compile to the same instructions.
Job shrunk(const Job& job);

}  // namespace hyperrun

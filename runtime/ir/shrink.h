// Execution to scale: a job whose model is too large for the host runs with a smaller one of the same
// structure, and each instruction lasts as long as in the original.
#pragma once

#include "runtime/ir/job.h"

namespace hyperrun {

// The job with its layers divided by `depth`, and else as it was: what the execution is to the scale of.
// Stages of a pipeline lose layers alike.
Job with_fewer_layers(const Job& job);

// The same with all of its sizes divided: what is executed. Heads, experts and choices, and all that says how
// the work is spread stay as they are, so that both compile to the same instructions.
Job shrunk(const Job& job);

}  // namespace hyperrun

#pragma once

#include "runtime/ir/job.h"
#include "runtime/ir/program.h"

namespace hyperrun {

// The compiler for a job that is executed to scale by a smaller model (runtime/ir/shrink.h).
struct Scaled {
  Job job;    // the small model's job; its HBM budget is filled to the same share as the original's
  Plan plan;  // the small model's plan; its instructions wait for at least the same ones as the original's
  Plan original;  // the job's own model with fewer layers; has the same instructions as `plan`
};

// Compares the instructions of the Program "train". `peak` is the peak of the job's own model with all
// layers. Throws the errors of compile() for either model, and kBadLayout if their instructions differ.
Scaled compile_to_scale(const Job& job, Bytes peak);
// The same for compile_generation(), with the Programs "prefill" and "decode".
Scaled compile_generation_to_scale(const Job& job, Bytes peak);

}  // namespace hyperrun

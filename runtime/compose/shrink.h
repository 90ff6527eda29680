#pragma once

#include "runtime/ir/job.h"
#include "runtime/ir/program.h"

namespace hyperrun {

// What is executed to scale: see runtime/ir/shrink.h.
struct Scaled {
  Job job;        // of the small model; of its budget it takes what all of the job's model takes of the job's
  Plan plan;      // of that job, whose instructions wait for each other where the original's do as well
  Plan original;  // with fewer layers: instruction by instruction what `plan` stands for
};

// The Program "train". `peak`: of the job's own model, all of its layers. Throws what compile() does of
// either model, and kBadLayout when both are not the same instructions.
Scaled compile_to_scale(const Job& job, Bytes peak);
// The same of compile_generation(), with "prefill" and "decode".
Scaled compile_generation_to_scale(const Job& job, Bytes peak);

}  // namespace hyperrun

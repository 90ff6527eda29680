#pragma once

#include <cstdint>

#include "runtime/ir/job.h"
#include "runtime/ir/program.h"

namespace hyperrun {

// Whether job.run.resume can be gone on from, before anything starts: its tensors are the plan's, its
// config.json is the job's model, it was trained with the job's seed, and there is something left to do.
// Returns the step that comes next. Throws kBadCheckpoint, kMissingFile or kBadValue.
std::int64_t check_resume(const Job& job, const Plan& plan);

}  // namespace hyperrun

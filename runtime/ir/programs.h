// Splits a job of several programs into jobs of one program each.
#pragma once

#include <vector>

#include "runtime/ir/job.h"

namespace hyperrun {

// The job of one program alone on its devices: a training, or a generation (run.generate). Fields that are
// only for training (batch, recomputation) are left out of other programs. Pool and flash are the share of
// the program's devices.
Job job_of(const Job& whole, const ProgramSpec& program);

// The ranks of the program's devices among those of the job.
std::vector<int> ranks_of(const ProgramSpec& program);

// The program that does `does`; null: none.
const ProgramSpec* find_program(const Job& job, std::string_view does);

}  // namespace hyperrun

// A job of several programs, as jobs of one.
#pragma once

#include <vector>

#include "runtime/ir/job.h"

namespace hyperrun {

// The job that one of them would be alone on its devices: a training, or a generation (run.generate). What
// only a training says (its batch, what it recomputes) is not the others'. Of pool and flash it has its
// devices' share.
Job job_of(const Job& whole, const ProgramSpec& program);

// Of its devices, among those of the job.
std::vector<int> ranks_of(const ProgramSpec& program);

// The one that `does` it; null: none.
const ProgramSpec* find_program(const Job& job, std::string_view does);

}  // namespace hyperrun

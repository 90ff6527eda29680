// Whether the programs of a job go together, and each by itself is a job.
#pragma once

#include <vector>

#include "runtime/base/error.h"
#include "runtime/ir/job.h"
#include "runtime/spec/job_source.h"

namespace hyperrun {

// The defaults of each program's blocks, where the job leaves them out. The rest of the job has its own.
std::vector<Error> fill_programs(Job& job, const JobSource& source);

// Rules between programs, and of each by itself. The job's other blocks are in order.
std::vector<Error> check_programs(const Job& job, const JobSource& source);

}  // namespace hyperrun

// Checks that the faults of run.chaos can happen.
#pragma once

#include <vector>

#include "runtime/base/error.h"
#include "runtime/ir/job.h"
#include "runtime/spec/job_source.h"

namespace hyperrun {

std::vector<Error> check_faults(const Job& job, const JobSource& source);

}  // namespace hyperrun

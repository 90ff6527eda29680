// Checks that a job's pipeline, its stages and its schedule go together.
#pragma once

#include <vector>

#include "runtime/base/error.h"
#include "runtime/ir/job.h"
#include "runtime/spec/job_source.h"

namespace hyperrun {

// Appends an error for each broken rule.
void check_pipeline(const Job& job, const JobSource& source, std::vector<Error>& errors);

}  // namespace hyperrun

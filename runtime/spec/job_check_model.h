// Whether the fields of a job's model go together.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/base/error.h"
#include "runtime/ir/job.h"
#include "runtime/spec/job_source.h"

namespace hyperrun {

// "heads 8", as messages say it.
std::string of(std::int64_t v, const char* field);

// Adds to `errors` what is wrong.
void check_model(const Job& job, const JobSource& source, std::vector<Error>& errors);

}  // namespace hyperrun

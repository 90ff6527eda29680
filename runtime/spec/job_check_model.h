// Checks that the fields of a job's model go together.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/base/error.h"
#include "runtime/ir/job.h"
#include "runtime/spec/job_source.h"

namespace hyperrun {

// "heads 8": a field with its value, for messages.
std::string of(std::int64_t v, const char* field);

// Appends an error for each broken rule.
void check_model(const Job& job, const JobSource& source, std::vector<Error>& errors);

}  // namespace hyperrun

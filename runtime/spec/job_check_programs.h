// Whether the programs of a job go together, and each by itself is a job.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "runtime/base/error.h"
#include "runtime/ir/job.h"
#include "runtime/spec/job_source.h"

namespace hyperrun {

// The defaults of each program's blocks, where the job leaves them out. The rest of the job has its own.
std::vector<Error> fill_programs(Job& job, const JobSource& source);

// Rules between programs, and of each by itself. The job's other blocks are in order.
std::vector<Error> check_programs(const Job& job, const JobSource& source);

// The source of the job that a program would be alone: its blocks stand where the job's would.
JobSource source_of(const JobSource& whole, std::size_t program);

// Where the program stands in the job, "programs[2]"; and names as messages list them.
std::string block_of(std::size_t program);
std::string in_words(const std::set<std::string>& names);

}  // namespace hyperrun

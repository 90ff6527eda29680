// Checks that the programs of a job go together, and that each is a legal job by itself.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "runtime/base/error.h"
#include "runtime/ir/job.h"
#include "runtime/spec/job_source.h"

namespace hyperrun {

// Fills in the defaults of each program's blocks. The defaults of the job's other blocks must be filled in.
std::vector<Error> fill_programs(Job& job, const JobSource& source);

// Checks the rules between programs, and each program by itself. The job's other blocks must be in order.
std::vector<Error> check_programs(const Job& job, const JobSource& source);

// The source of the job of one program alone: the program's blocks take the places of the job's.
JobSource source_of(const JobSource& whole, std::size_t program);

// The field path of a program, "programs[2]"; and a list of names for messages.
std::string block_of(std::size_t program);
std::string describe_names(const std::set<std::string>& names);

}  // namespace hyperrun

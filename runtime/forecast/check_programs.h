#pragma once

#include "runtime/forecast/check.h"
#include "runtime/spec/job_reader.h"

namespace hyperrun {

// hyperrun check of a job of several programs: prints the programs, the exchanges of weights between them,
// and the HBM that each device needs for all of its programs.
int check_programs(LoadedJob& loaded, const CheckArguments& arguments);

}  // namespace hyperrun

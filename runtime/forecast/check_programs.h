#pragma once

#include "runtime/forecast/check.h"
#include "runtime/spec/job_reader.h"

namespace hyperrun {

// "hyperrun check" of a job of several programs: each, the weights that go between them, and what a device
// has of HBM.
int check_programs(LoadedJob& loaded, const CheckArguments& arguments);

}  // namespace hyperrun

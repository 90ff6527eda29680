// Warnings about layouts that a job may have and hardly wants: devices that do the same work, stages that
// wait.
#pragma once

#include <string>
#include <vector>

#include "runtime/base/warning.h"
#include "runtime/ir/graph.h"
#include "runtime/spec/job_reader.h"

namespace hyperrun {

// `training`: the job's sharded step.
std::vector<Warning> warnings_of(const LoadedJob& loaded, const Graph& training);

// The same of the program that learns from the rewards of others.
std::vector<Warning> warnings_of_learner(const LoadedJob& loaded);

// Each is written to standard error.
void tell(const std::vector<Warning>& warnings);

}  // namespace hyperrun

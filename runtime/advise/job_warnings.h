// Warnings about what is legal and hardly meant: devices that repeat work, stages that wait, checks that can
// find nothing.
#pragma once

#include <string>
#include <vector>

#include "runtime/base/warning.h"
#include "runtime/ir/graph.h"
#include "runtime/spec/job_reader.h"

namespace hyperrun {

// `training`: the sharded step of the job.
std::vector<Warning> warnings_of(const LoadedJob& loaded, const Graph& training);

// Warnings for the program that learns, in a job with rewards.
std::vector<Warning> warnings_of_learner(const LoadedJob& loaded);

// Writes the warnings to standard error.
void print_warnings(const std::vector<Warning>& warnings);

}  // namespace hyperrun

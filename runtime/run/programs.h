// Preparations common to all runs of several programs.
#pragma once

#include <cstdint>

#include "runtime/report/programs.h"
#include "runtime/spec/job_reader.h"

namespace hyperrun {

// Throws kBadValue for a job on the paced clock without a dilation. Each of its programs would choose a
// different one.
void require_dilation(const LoadedJob& loaded);

// Fills in the facts of a report that are known before anything runs.
void describe(const Job& job, std::int64_t parameters, ProgramsReport& report);

}  // namespace hyperrun

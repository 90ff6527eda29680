// What runs of several programs have in common before they start.
#pragma once

#include <cstdint>

#include "runtime/report/programs.h"
#include "runtime/spec/job_reader.h"

namespace hyperrun {

// Throws kBadValue for a job on the paced clock without a dilation: its programs would each find one of their
// own.
void require_dilation(const LoadedJob& loaded);

// Fills in what is known of a report before anything runs.
void describe(const Job& job, std::int64_t parameters, ProgramsReport& report);

}  // namespace hyperrun

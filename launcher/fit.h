#pragma once

#include "runtime/ir/program.h"
#include "runtime/spec/job_reader.h"

namespace hyperrun {

// As check_fits of the job's budget. The remedy of its kDoesNotFit was tried: the three changes to the job
// that bring its peak into the budget and whose simulated steps are the shortest, with bytes and time of
// each; where none does alone, those together that do, or what comes down the furthest.
void require_fit(const LoadedJob& loaded, const Plan& plan);

}  // namespace hyperrun

#pragma once

#include "runtime/advise/fit_effort.h"
#include "runtime/ir/program.h"
#include "runtime/spec/job_reader.h"

namespace hyperrun {

// As check_fits of the job's budgets. The remedy of its kDoesNotFit was tried: the three changes to the job
// that bring it into its budgets and whose simulated steps are the shortest, with bytes and time of each;
// where none does alone, those together that do, or what comes down the furthest. So were the budgets that it
// says are enough. No more is tried than `most` takes; what was not is named.
void require_fit(const LoadedJob& loaded, const Plan& plan, Effort most = kMostEffort);

// The same of compile_generation's plan; times are of a pass of "decode".
void require_generation_fit(const LoadedJob& loaded, const Plan& plan, Effort most = kMostEffort);

}  // namespace hyperrun

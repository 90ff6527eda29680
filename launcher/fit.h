#pragma once

#include "runtime/ir/program.h"
#include "runtime/spec/job_reader.h"

namespace hyperrun {

// As check_fits of the job's budget. The remedy of its kDoesNotFit was tried: the changes to the job, alone
// or together, that bring its peak into the budget, or down the furthest, with the bytes that each needs.
void require_fit(const LoadedJob& loaded, const Plan& plan);

}  // namespace hyperrun

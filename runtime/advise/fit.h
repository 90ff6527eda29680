#pragma once

#include "runtime/advise/fit_effort.h"
#include "runtime/ir/program.h"
#include "runtime/spec/job_reader.h"

namespace hyperrun {

// Like check_fits() for the job's budgets, but the kDoesNotFit error has a remedy that was tried: the three
// changes that fit and have the shortest simulated steps, with their bytes and times. If no single change
// fits, the remedy combines several, or tells how low memory can get. Sufficient budgets were tried as well.
// The trials take no more than `most`; the error names what was left out, and
// says if the search was cut off.
void require_fit(const LoadedJob& loaded, const Plan& plan, SearchLimits most = {});

// The same for a plan of compile_generation(). Times are those of a "decode" pass.
void require_generation_fit(const LoadedJob& loaded, const Plan& plan, SearchLimits most = {});

}  // namespace hyperrun

// The report of a simulated step, in the form of a run's report.
#pragma once

#include "runtime/ir/job.h"
#include "runtime/report/report.h"
#include "runtime/sim/job_forecast.h"

namespace hyperrun {

// The report of the job's steps, all alike. A job that leaves its number of steps open counts as one step.
RunReport simulated_report(const Job& job, const Plan& plan, const JobForecast& forecast);

// The breakdown of the step, and the bytes over each level of the machine. The range is left unset.
SimulatedUse simulated_use(const JobForecast& forecast, const Machine& machine);

}  // namespace hyperrun

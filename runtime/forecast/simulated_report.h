// The report of a simulated step, of the same form as that of a run.
#pragma once

#include "runtime/ir/job.h"
#include "runtime/report/report.h"
#include "runtime/sim/job_forecast.h"

namespace hyperrun {

// A job that leaves its steps open has one.
RunReport simulated_report(const Job& job, const Plan& plan, const JobForecast& forecast);

// Where the step goes and what it moves over the levels of the machine. The range is left open.
SimulatedUse simulated_use(const JobForecast& forecast, const Machine& machine);

}  // namespace hyperrun

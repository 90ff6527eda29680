// Files that `hyperrun plan` writes: the best plan as a job, and pictures.
#pragma once

#include <string>
#include <string_view>

#include "runtime/ir/job.h"
#include "runtime/plan/simulated_candidate.h"

namespace hyperrun {

// Stands above a job that is a plan.
inline constexpr std::string_view kPlanMark = "# planned by hyperrun: ";

// The job of the best, ready to run; `path`: where it will lie.
std::string planned_job(const Job& job, const SimulatedCandidate& best, const std::string& path);

// Written whole or not at all. Errors name the option.
void write_whole(const std::string& path, const std::string& option, const std::string& text);

}  // namespace hyperrun

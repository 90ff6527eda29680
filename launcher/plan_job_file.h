// The files that `hyperrun plan` writes: the best plan as a job, and pictures.
#pragma once

#include <string>
#include <string_view>

#include "runtime/ir/job.h"
#include "runtime/plan/simulated_candidate.h"

namespace hyperrun {

// The first line of a job that `hyperrun plan` has written begins with this mark.
inline constexpr std::string_view kPlanMark = "# planned by hyperrun: ";

// The text of a job that runs the best strategy. `path` is the file that will hold it.
std::string planned_job(const Job& job, const SimulatedCandidate& best, const std::string& path);

// Writes a file atomically. Errors name the option.
void write_whole(const std::string& path, const std::string& option, const std::string& text);

}  // namespace hyperrun

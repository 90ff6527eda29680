// What the Programs of a job need of each tier, as tables.
#pragma once

#include <string>

#include "runtime/ir/job.h"
#include "runtime/ir/program.h"

namespace hyperrun {

// HBM of the devices of a role by category, at the fullest moment of its Programs, beside the budget.
std::string hbm_table(const Job& job, const Role& role);

// The peak of each role, in a job that has several.
std::string role_peaks_table(const Job& job, const Plan& plan);

// The pool and flash that a role uses, and what a step moves there and back; empty where it uses neither.
std::string transfers_table(const Job& job, const Role& role);

}  // namespace hyperrun

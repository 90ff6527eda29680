// Tables of the memory that a job's Programs need in each tier.
#pragma once

#include <string>

#include "runtime/ir/job.h"
#include "runtime/ir/program.h"

namespace hyperrun {

// The HBM of a role's device by category, at the fullest moment of its Programs, with the budget.
std::string hbm_table(const Job& job, const Role& role);

// The HBM peak of each role.
std::string role_peaks_table(const Job& job, const Plan& plan);

// The pool and flash that a role uses, and the transfers of a step. Empty if it uses neither.
std::string transfers_table(const Job& job, const Role& role);

}  // namespace hyperrun

// Where HBM is short and what could relieve it, the pool or flash, has too little room for that as well.
#pragma once

#include <optional>
#include <string>

#include "runtime/advise/fit_search.h"

namespace hyperrun {

struct Relief {
  Job job;            // fits: with more beyond HBM, if need be with more HBM, and moving where it did not
  Tier tier{};        // that is too small
  Bytes hbm, beyond;  // budgets of it that are enough, for each device and for all together
  Plan plan;
};

// Of a job that lacks HBM: nothing where the tier that it moves to (of one that moves nothing: that it could
// move to) has room enough, or where more room there helps nothing; nor where to find out takes more than a
// share of `most`. It is then not known (see relief_is_too_long).
std::optional<Relief> relief_of(const LoadedJob& loaded, const Plan& plan, FitPurpose purpose, Effort most);

// Of a job that moves tensors.
bool relief_is_too_long(const Job& job, const Plan& plan, Effort most);

// For the error's cause, of a job that moves tensors: that the tier is too small, too, and what fills it.
std::string cause_of(const Relief& relief, Bytes budget);

// What is to be changed of the job, without what that takes.
std::string change_of(const Relief& relief, const Job& job);

}  // namespace hyperrun

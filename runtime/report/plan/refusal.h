#pragma once

#include "runtime/base/error.h"
#include "runtime/plan/search.h"
#include "runtime/report/status_line.h"

namespace hyperrun {

// True if no strategy can meet all constraints, whatever is searched.
bool is_contradictory(const Job& job, const Space& space);
// Throws kUsage if the constraints contradict each other.
void require_constraints_that_agree(const Job& job, const Space& space);

// True if nothing was found because no strategy meets the constraints.
bool none_meets_constraints(const Space& space, const Search& failed);

// Error for a search without result: its cause, and remedies that were searched, compiled and simulated.
Error nothing_feasible(const Job& job, const Space& space, const Search& failed, StatusLine& status);

}  // namespace hyperrun

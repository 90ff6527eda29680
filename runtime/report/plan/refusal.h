#pragma once

#include "runtime/base/error.h"
#include "runtime/plan/search.h"
#include "runtime/report/status_line.h"

namespace hyperrun {

// No strategy can meet all constraints, whatever is searched.
bool is_contradictory(const Job& job, const Space& space);
// Throws kUsage then.
void require_constraints_that_agree(const Job& job, const Space& space);

// Nothing was found, as no strategy meets the constraints.
bool none_is_so(const Space& space, const Search& failed);

// Why the search has found nothing, and what would do: what is told was searched, compiled and simulated.
Error nothing_feasible(const Job& job, const Space& space, const Search& failed, StatusLine& status);

}  // namespace hyperrun

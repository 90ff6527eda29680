#pragma once

#include "launcher/status_line.h"
#include "runtime/base/error.h"
#include "runtime/plan/search.h"

namespace hyperrun {

// An error where no strategy can meet all constraints, whatever is searched.
void require_constraints_that_agree(const Job& job, const Space& space);

// Why the search has found nothing, and what would do: what is told was searched, compiled and simulated.
Error nothing_feasible(const Job& job, const Space& space, const Search& failed, StatusLine& status);

}  // namespace hyperrun

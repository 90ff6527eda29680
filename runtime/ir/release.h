// Frees plans that are not needed any more.
#pragma once

#include "runtime/base/parallel.h"
#include "runtime/ir/program.h"

namespace hyperrun {

// Removes all roles of a plan. Long Programs hold millions of allocations, so several cores free them.
inline void release(Plan& plan) {
  parallel_for(plan.roles.size(),
               [&](std::size_t r) { std::vector<Program>().swap(plan.roles[r].programs); });
  plan.roles.clear();
}

}  // namespace hyperrun

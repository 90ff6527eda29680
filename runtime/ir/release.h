// The end of a plan that is not needed any more.
#pragma once

#include "runtime/base/parallel.h"
#include "runtime/ir/program.h"

namespace hyperrun {

// Leaves a plan without roles. What long Programs hold, millions of allocations, is freed on several cores.
inline void release(Plan& plan) {
  parallel_for(plan.roles.size(),
               [&](std::size_t r) { std::vector<Program>().swap(plan.roles[r].programs); });
  plan.roles.clear();
}

}  // namespace hyperrun

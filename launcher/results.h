// What the devices report of an invocation, as values.
#pragma once

#include <span>
#include <vector>

#include "runtime/control/messages.h"
#include "runtime/ir/stats.h"

namespace hyperrun {

// Of the first device that has it: in a pipeline not all do.
double output(std::span<const control::InvocationDone> results, const char* name);

std::vector<InvocationStats> stats_of(std::span<const control::InvocationDone> results);

}  // namespace hyperrun

// What the devices report of an invocation, as values.
#pragma once

#include <span>
#include <vector>

#include "runtime/device/output_arrays.h"
#include "runtime/ir/stats.h"
#include "runtime/tasks/messages.h"

namespace hyperrun {

// Of the first device that has it: in a pipeline not all do.
double output(std::span<const tasks::InvocationDone> results, const char* name);

// By device, what it tells of arrays.
std::vector<std::vector<OutputPart>> parts_of(std::span<const tasks::InvocationDone> results);

std::vector<InvocationStats> stats_of(std::span<const tasks::InvocationDone> results);

}  // namespace hyperrun

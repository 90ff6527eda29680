// The results of an invocation, decoded from the devices' reports.
#pragma once

#include <span>
#include <vector>

#include "runtime/device/output_arrays.h"
#include "runtime/ir/stats.h"
#include "runtime/tasks/messages.h"

namespace hyperrun {

// The named output, from the first device that has it. In a pipeline only some devices do.
double output(std::span<const tasks::InvocationDone> results, const char* name);

// The parts of array outputs, by device.
std::vector<std::vector<OutputPart>> parts_of(std::span<const tasks::InvocationDone> results);

std::vector<InvocationStats> stats_of(std::span<const tasks::InvocationDone> results);

}  // namespace hyperrun

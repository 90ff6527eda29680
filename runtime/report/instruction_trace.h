// An invocation of a Program, executed or simulated, as a part of a trace.
#pragma once

#include <cstdint>

#include "runtime/ir/program.h"
#include "runtime/ir/stats.h"
#include "runtime/report/trace.h"

namespace hyperrun {

// Slices on the device's streams (members of a collective joined by a flow) and the HBM counter.
// `start`: the trace's time 0 on the clock of `stats`.
void add_invocation(TraceWriter& trace, const Program& program, int device, std::int64_t step,
                    const InvocationStats& stats, std::int64_t start);

}  // namespace hyperrun

// hyperrun sim of jobs of several programs, whose tasks are simulated and not one step of a Program.
#pragma once

#include <functional>
#include <string>

#include "runtime/forecast/sim.h"
#include "runtime/spec/job_reader.h"

namespace hyperrun {

// Calls `simulate`, which prints. Throws kUsage where something is asked for that only the step of one
// program has, and what `simulate` throws with the line of the job that it is about. Returns the exit status.
int simulate_tasks(const LoadedJob& loaded, const SimArguments& arguments,
                   const std::function<void()>& simulate);

// Below a forecast for people, where a trace has been written; `more` says what of.
void print_trace(const SimArguments& arguments, const std::string& more = "");

}  // namespace hyperrun

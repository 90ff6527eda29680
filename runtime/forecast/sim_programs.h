// The common part of hyperrun sim for jobs of several programs, which simulates tasks instead of one step.
#pragma once

#include <functional>
#include <string>

#include "runtime/forecast/sim.h"
#include "runtime/spec/job_reader.h"

namespace hyperrun {

// Calls `simulate`, which prints the result. Returns the exit status. Throws kUsage for options that apply
// only to the step of one program, and the errors of `simulate` with their line of the job.
int simulate_tasks(const LoadedJob& loaded, const SimArguments& arguments,
                   const std::function<void()>& simulate);

// Prints the name of the trace file, if one has been written. `more` is printed behind it.
void print_trace(const SimArguments& arguments, const std::string& more = "");

}  // namespace hyperrun

#include "runtime/forecast/sim_programs.h"

#include <cstdio>

#include "runtime/base/error.h"

namespace hyperrun {
namespace {

void require_options_of_tasks(const SimArguments& a) {
  if (a.chakra.empty() && a.devices.empty() && !a.csv && a.explain == 0 && a.slow.empty() && a.jitter == 0)
    return;
  throw Error(Code::kUsage, "of a job of several programs tasks are simulated, and not one step of a program")
      .at("hyperrun sim")
      .legal("--json, --trace, --lengths")
      .fix("leave the other options out");
}

}  // namespace

int simulate_tasks(const LoadedJob& loaded, const SimArguments& arguments,
                   const std::function<void()>& simulate) {
  require_options_of_tasks(arguments);
  try {
    simulate();
  } catch (const JobError&) {
    throw;
  } catch (const Error& e) {
    throw at_job_line(e, loaded.source);
  }
  return 0;
}

void print_trace(const SimArguments& arguments, const std::string& more) {
  if (!arguments.trace.empty()) std::printf("\ntrace: %s%s\n", arguments.trace.c_str(), more.c_str());
}

}  // namespace hyperrun

#include "launcher/sim_programs.h"

#include "runtime/base/error.h"

namespace hyperrun {

void require_options_of_tasks(const SimArguments& a) {
  if (a.chakra.empty() && a.devices.empty() && !a.csv && a.explain == 0 && a.slow.empty() && a.jitter == 0)
    return;
  throw Error(Code::kUsage, "of a job of several programs tasks are simulated, and not one step of a program")
      .at("hyperrun sim")
      .legal("--json, --trace, --lengths")
      .fix("leave the other options out");
}

}  // namespace hyperrun

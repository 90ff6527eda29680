// A published run, compiled once and simulated on any machine.
#pragma once

#include <vector>

#include "runtime/ir/machine.h"
#include "runtime/ir/program.h"
#include "runtime/validate/published_run.h"

namespace hyperrun {

// The simulated step of a run. A full pipeline takes equally long for each further micro-batch. For runs of
// many micro-batches two shorter steps are compiled, with 5/4 and 6/4 micro-batches for each stage (8 and 16
// more than stages, at least), and the time of the whole step is extrapolated from their difference.
class RunModel {
 public:
  // `software`: what the run's framework keeps besides; without a name nothing.
  explicit RunModel(const PublishedRun& run, const Software& software = {});
  // Compiles the run with all its micro-batches, without extrapolation.
  static RunModel whole(const PublishedRun& run);

  // Throws kDoesNotFit if a device of the machine has no room for the run.
  double milliseconds(const Machine& machine) const;
  // The peak of the fullest device.
  double gibibytes() const;

 private:
  struct Steps {
    std::int32_t micro_batches = 0;
    Plan plan;
  };
  RunModel(const PublishedRun& run, const Software& software, const std::vector<std::int32_t>& micro_batches);

  std::int32_t devices_, micro_batches_;
  std::vector<Steps> steps_;  // one step, or two to extrapolate from
};

}  // namespace hyperrun

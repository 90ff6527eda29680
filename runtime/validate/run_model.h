// A published run as the simulator sees it: compiled once, simulated on any machine.
#pragma once

#include <vector>

#include "runtime/ir/machine.h"
#include "runtime/ir/program.h"
#include "runtime/validate/published_run.h"

namespace hyperrun {

// A pipeline that is full adds the same for each further micro-batch. Of runs of many, two steps are compiled
// that fill it, of 5/4 and 6/4 micro-batches a stage (2 and 4 more than stages, at least), and the rest is
// their difference again and again.
class RunModel {
 public:
  explicit RunModel(const PublishedRun& run);
  // With all micro-batches.
  static RunModel whole(const PublishedRun& run);

  // Throws kDoesNotFit where a device of the machine has no room for it.
  double milliseconds(const Machine& machine) const;

 private:
  struct Steps {
    std::int32_t micro_batches = 0;
    Plan plan;
  };
  RunModel(const PublishedRun& run, const std::vector<std::int32_t>& micro_batches);

  std::int32_t devices_, micro_batches_;
  std::vector<Steps> steps_;  // one, or two to go on from
};

}  // namespace hyperrun

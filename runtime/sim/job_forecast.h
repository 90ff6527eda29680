// The forecast of a whole training job on its supernode.
#pragma once

#include <array>
#include <vector>

#include "memory/host.h"
#include "runtime/ir/job.h"
#include "runtime/ir/program.h"
#include "runtime/sim/simulate.h"

namespace hyperrun {

struct JobForecast {
  SimResult init, train;
  Nanos step{};                                       // one training step
  Nanos total{};                                      // init and all steps
  double tokens_per_second = 0;                       // all devices together
  std::vector<std::array<Bytes, kTiers>> high_water;  // by role, the highest of all its Programs
  double model_flops = 0;                             // of one step, all devices together
  double mfu = 0;  // model FLOPs over the FLOPs that the cube units could do in the step
  double hfu = 0;  // the same with the FLOPs that they really do, recomputation included
};

JobForecast forecast(const Job& job, const Plan& plan, const Topology& topology,
                     const SimOptions& options = {});

// FLOPs of the matrix products of one training step over `sequences` samples, as the literature counts them:
// 6 for each token and weight that multiplies, and 6 products of causal attention. Recomputation does not
// count.
double model_flops(const ModelSpec& model, std::int64_t sequences);

}  // namespace hyperrun

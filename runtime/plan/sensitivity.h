// Sensitivity to the machine: the best strategy if one figure were different, such as half the bandwidth or
// twice the pool.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "runtime/ir/job.h"
#include "runtime/plan/search.h"

namespace hyperrun {

// A figure of the machine. A larger value never makes a step longer.
struct MachineFigure {
  std::string name;  // "bandwidth of the node"
  std::function<void(SupernodeSpec& spec, double factor)> scale;
};
// Figures that the machine has and that matter for its devices.
std::vector<MachineFigure> machine_figures(const SupernodeSpec& spec);

struct WhatIf {
  std::string figure;
  double factor = 1;
  SimulatedCandidate present;  // the best strategy of the unchanged machine
  SimulatedCandidate best;     // the best simulated one, `present` included
  bool searched = false;
  bool other() const { return !(best.strategy == present.strategy); }
  // Speed-up of the best over the present one; 0: no comparison.
  double gain() const { return present.simulated > 0 ? present.simulated / best.simulated : 0; }
};

struct SensitivityOptions {
  const Space* space = &spaces().front();
  std::int32_t leaders = 2;  // simulated in each search
  std::vector<double> factors{0.5, 2};
  Progress progress;
};

// `best`: of the job as it is. If a smaller figure leaves its step unchanged, no other strategy can have
// become better, so nothing is searched.
std::vector<WhatIf> sensitivity(const Job& base, const SimulatedCandidate& best,
                                const SensitivityOptions& options);

}  // namespace hyperrun

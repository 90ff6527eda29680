// What if the bus were half as fast, the pool twice as large: the best strategy on a machine of which one
// figure is another.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "runtime/ir/job.h"
#include "runtime/plan/search.h"

namespace hyperrun {

// A figure of the machine. More of it never makes a step longer.
struct MachineFigure {
  std::string name;  // "bandwidth of the node"
  std::function<void(SupernodeSpec& spec, double factor)> scale;
};
// Those that the machine has and so many devices reach.
std::vector<MachineFigure> machine_figures(const SupernodeSpec& spec);

struct WhatIf {
  std::string figure;
  double factor = 1;
  Leader present;  // the best of the machine as it is
  Leader best;     // of those that were simulated there, `present` among them
  bool searched = false;
  bool other() const { return !(best.strategy == present.strategy); }
  // How many times as fast the best is as the present one; 0: there is none to compare.
  double gain() const { return present.simulated > 0 ? present.simulated / best.simulated : 0; }
};

struct SensitivityOptions {
  const Space* space = &spaces().front();
  std::int32_t leaders = 2;  // that are simulated of each search
  std::vector<double> factors{0.5, 2};
  Progress progress;
};

// `best`: of the job as it is. Where less of a figure leaves its step as long as it was, no other strategy
// has become better than it: none has become faster. Then nothing is searched.
std::vector<WhatIf> sensitivity(const Job& base, const Leader& best, const SensitivityOptions& options);

}  // namespace hyperrun

// What faults cost a run: its goodput under each policy, for each number of devices, over several histories
// of faults.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/faults/costs.h"
#include "runtime/faults/fault_model.h"
#include "runtime/faults/policy.h"
#include "runtime/faults/walk.h"

namespace hyperrun {

// The mean of several histories, and how far from it the true mean is with a probability of 95 %.
struct Spread {
  double mean = 0, within = 0;
};
Spread spread_of(const std::vector<double>& values);

// An interval between saves, in seconds of training, and what is expected of it.
struct FaultIntervals {
  std::int64_t best_steps = 1;
  double best = 0;
  double young = 0, daly = 0;  // their formulas for the same save and the same faults
  double expected = 0;         // goodput of the best by the closed form, without repairs to wait for
};

struct FaultPoint {
  std::int64_t steps = 1;  // between two saves
  Spread goodput;
};

struct FaultRow {
  FaultPolicy policy;
  FaultIntervals interval;
  Spread goodput;
  double of_all = 0;              // goodput of all devices, spares among them
  FaultOutcome mean;              // of the histories; seconds
  std::vector<FaultPoint> curve;  // goodput against the interval
};

struct FaultScale {
  FaultedRun run;
  FaultCosts costs;
  double mtbf = 0;  // seconds between two faults of the run's devices; infinite: there are none
  std::vector<FaultRow> rows;
};

struct FaultStudy {
  std::string job;
  FaultModel spec;
  std::vector<FaultScale> scales;
  std::string smaller;  // what is assumed of steps with fewer replicas, as a sentence
};

FaultStudy study_faults(const FaultModel& spec, const FaultedRun& run);

}  // namespace hyperrun

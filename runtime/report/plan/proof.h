// Result of `hyperrun plan JOB --prove N`: measured steps of plans in a small world beside predicted ones,
// and losses beside those of one device.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/ir/job.h"
#include "runtime/plan/simulated_candidate.h"
#include "runtime/report/json.h"
#include "runtime/report/report.h"
#include "runtime/verify/one_device.h"

namespace hyperrun {

// Share of an instruction's time allowed for start and wake-up. It lengthens all plans by nearly the same.
inline constexpr double kProofOverhead = 0.03;

struct ProvenPlan {
  SimulatedCandidate leader;
  ModelSpec executed;  // the shrunk model
  PacedUse paced;
  std::vector<double> losses;    // by step
  std::vector<StepLoss> of_one;  // the same steps on one device

  double off() const;  // measured over simulated step, relative
  // The step whose loss is closest to its tolerance or furthest beyond it.
  std::size_t worst_step() const;
  double difference(std::size_t step) const;  // relative difference of losses
};

struct Proof {
  std::int32_t job_layers = 0, job_devices = 0, job_batch = 0;
  Job world;
  std::vector<ProvenPlan> plans;  // the fastest first, as simulated
  double correlation = 0;         // Spearman correlation of simulated and measured steps
  double behind = 0;              // measured step of the first over the shortest, less 1
};

// Computes the correlation and `behind`. There must be plans.
void judge(Proof& proof);

std::string to_text(const Proof& proof);
Json to_json(const Proof& proof);

// Throws kNotEqual if a loss differs from one device's, or if the measured order is not the predicted one.
void require_proven(const Proof& proof);

}  // namespace hyperrun

// What `hyperrun plan JOB --prove N` has measured of plans of a small world, beside what was predicted of
// them, and their losses beside one device's.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/ir/job.h"
#include "runtime/plan/leader.h"
#include "runtime/report/json.h"
#include "runtime/report/report.h"
#include "runtime/verify/one_device.h"

namespace hyperrun {

// The share of an instruction's time that starting and waking may take. It makes all plans longer by nearly
// the same.
inline constexpr double kProofOverhead = 0.03;

struct ProvenPlan {
  Leader leader;
  ModelSpec executed;  // the small model
  PacedUse paced;
  std::vector<double> losses;    // by step
  std::vector<StepLoss> of_one;  // what one device has in their place

  double off() const;  // of the measured step, over the simulated one
  // The step whose loss comes nearest to the allowed difference, or is farthest beyond it.
  std::size_t worst_step() const;
  double difference(std::size_t step) const;  // of the loss, relative
};

struct Proof {
  std::int32_t job_layers = 0, job_devices = 0, job_batch = 0;
  Job world;
  std::vector<ProvenPlan> plans;  // the fastest first, as simulated
  double correlation = 0;         // Spearman's, of simulated and measured steps
  double behind = 0;              // the first's measured step over the shortest measured one, less 1
};

// Fills in the correlation, and by how much the first is behind. There are plans.
void judge(Proof& proof);

std::string to_text(const Proof& proof);
Json to_json(const Proof& proof);

// Throws kNotEqual where a loss is not one device's, or the order is not the predicted one.
void require_proven(const Proof& proof);

}  // namespace hyperrun

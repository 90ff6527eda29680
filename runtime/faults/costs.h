// The time that a run's steps, saves and restarts take, from its state and the figures of a FaultModel.
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/faults/fault_model.h"

namespace hyperrun {

// A run as far as faults are concerned.
struct FaultedRun {
  double step = 0;         // seconds of a step on all devices
  double state_bytes = 0;  // bytes of a checkpoint
  std::int32_t devices = 1;
  std::int32_t replica = 1;  // devices of one data-parallel replica, which divide `devices`
  // Of a run with this share of the replicas, and of the batch: steps a second over those of all replicas.
  double smaller_share = 0.5, smaller_speed = 1;
  std::vector<double> speeds = {};  // in place of these, by number of devices, if it is not empty
};

struct SaveCost {
  double stall = 0;    // seconds by which a save delays the steps
  double latency = 0;  // seconds from its begin until it can be used; at least `stall`

  // What is lost beyond the stall if a fault comes before a save can be used.
  double delay() const { return latency - stall; }
};

struct FaultCosts {
  double step = 0;
  SaveCost disk, copy;
  double read = 0;   // of a checkpoint
  double fetch = 0;  // of a copy from another host's memory
};

FaultCosts costs_of(const FaultModel& spec, const FaultedRun& run);

// The share of the run's speed that fewer devices reach: their share of the batch, over the time of their
// step.
double speed_with(const FaultedRun& run, std::int32_t devices);

}  // namespace hyperrun

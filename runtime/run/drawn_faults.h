// The faults of a run that are drawn from a model (run.chaos.model): which comes next, and which devices are
// there. Times are in seconds on the run's clock.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "runtime/faults/fault_model.h"
#include "runtime/faults/fault_trace.h"
#include "runtime/faults/healthy_devices.h"

namespace hyperrun {

class DrawnFaults {
 public:
  // `model.spares` wait beside the `devices` of the run.
  DrawnFaults(FaultModel model, std::int32_t devices, std::uint64_t seed);

  const FaultModel& model() const { return model_; }
  const std::vector<Fault>& history() const { return history_; }

  // So many devices start. Returns the first fault that hits one of them, if there is one.
  std::optional<Fault> start(std::int32_t devices);
  // Lets faults and repairs until `time` happen. The first fault that hits the devices in use ends their use.
  // Returns its time, if there was one.
  std::optional<double> pass(double time);
  // The devices in use have ended.
  void end() { in_use_ = 0; }

  // Devices that are there, spares among them, after what pass() has let happen.
  std::int32_t healthy() const { return healthy_.count(); }
  // When so many are there. Infinity: never.
  double time_until(std::int32_t devices) const;

 private:
  FaultModel model_;
  std::vector<Fault> history_;
  std::size_t next_ = 0;
  HealthyDevices healthy_;
  std::int32_t in_use_ = 0;
};

}  // namespace hyperrun

// The devices of a run and its spares that are there, through faults and repairs. A simulated and an executed
// run count them alike.
#pragma once

#include <cstdint>
#include <functional>
#include <queue>
#include <utility>
#include <vector>

#include "runtime/faults/fault_model.h"
#include "runtime/faults/fault_trace.h"

namespace hyperrun {

class HealthyDevices {
 public:
  explicit HealthyDevices(std::int32_t all) : count_(all) {}

  std::int32_t count() const { return count_; }

  // Takes away what a lasting fault takes: `in_use` devices run when it comes, 0 if none do. A fault of a
  // spare leaves those that run. Returns how many devices are gone.
  std::int32_t lose(const FaultModel& spec, const Fault& fault, std::int32_t in_use);

  // The time of the next repair; infinity if there is none.
  double next_repair() const;
  // Takes back the devices of the next repair.
  void take_back();

 private:
  using Repair = std::pair<double, std::int32_t>;  // time, devices
  std::int32_t count_;
  std::priority_queue<Repair, std::vector<Repair>, std::greater<>> repairs_;
};

}  // namespace hyperrun

#include "runtime/faults/healthy_devices.h"

#include <algorithm>
#include <limits>

namespace hyperrun {

std::int32_t HealthyDevices::lose(const FaultModel& spec, const Fault& fault, std::int32_t in_use) {
  if (!fault.lasting || fault.place >= count_) return 0;
  const FaultUnit unit = spec.unit(fault.kind);
  const bool hits_run = fault.place < in_use;
  const std::int32_t there = hits_run ? count_ : count_ - in_use;
  const std::int32_t gone = std::min(unit.devices, there);
  count_ -= gone;
  repairs_.emplace(fault.time + unit.repair, gone);
  return gone;
}

double HealthyDevices::next_repair() const {
  return repairs_.empty() ? std::numeric_limits<double>::infinity() : repairs_.top().first;
}

void HealthyDevices::take_back() {
  count_ += repairs_.top().second;
  repairs_.pop();
}

}  // namespace hyperrun

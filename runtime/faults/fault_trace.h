// A history of faults: when, of what, and where, by seed alone. The same history serves all policies and
// intervals, so that their differences are not those of luck.
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/faults/fault_model.h"

namespace hyperrun {

struct Fault {
  double time = 0;
  FaultKind kind = FaultKind::kDevice;
  double place = 0;      // 0 to the number of devices: whom it hits
  bool lasting = false;  // devices are gone until repaired
  double partner = 0;    // 0 to 1: whether it also hits the holder of a copy
};

// The faults of `devices` devices, spares among them, over the horizon of the spec, in order. Each kind's are
// a Poisson process.
std::vector<Fault> draw_faults(const FaultModel& spec, std::int32_t devices, std::uint64_t seed);

}  // namespace hyperrun

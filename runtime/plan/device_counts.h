// The same job on other numbers of devices, and the numbers on which some layout divides.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/ir/job.h"
#include "runtime/plan/space.h"

namespace hyperrun {

// The job on `devices` of its machine. Pool and flash for each device stay the same.
Job with_devices(const Job& base, std::int32_t devices);

// True if some strategy of the space has layouts that divide.
bool divides(const Job& job, const Space& space);
// Explains why most layouts do not divide, if none does or there are no strategies. Empty if no reason is
// known.
std::string what_divides_nothing(const Job& base, const Space& space);
// The next smaller and the next larger number of devices on which a layout divides, if there are such.
std::vector<std::int32_t> devices_that_divide(const Job& base, const Space& space);

}  // namespace hyperrun

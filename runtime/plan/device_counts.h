// The job on other numbers of devices, and whether a layout divides there.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/ir/job.h"
#include "runtime/plan/space.h"

namespace hyperrun {

// The job on so many devices of its machine: the share of pool and flash that a device has stays.
Job with_devices(const Job& base, std::int32_t devices);

// Some strategy of the space has layouts that divide.
bool divides(const Job& job, const Space& space);
// Where layouts of all strategies do not divide, or there are no strategies: why most of them do not, in
// words, or empty.
std::string what_divides_nothing(const Job& base, const Space& space);
// The next smaller and the next larger number of devices for which a layout divides; what there is of them.
std::vector<std::int32_t> devices_that_divide(const Job& base, const Space& space);

}  // namespace hyperrun

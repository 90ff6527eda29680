// Which devices are alike: those that do the same at the same times, because their groups have the same
// shapes and the devices that they meet there are alike in turn.
#pragma once

#include <span>
#include <vector>

#include "runtime/cost/groups.h"

namespace hyperrun {

struct DeviceClasses {
  std::vector<int> class_of;  // by device
  std::vector<int> first;     // of each class: its lowest device
};

// The coarsest classes for which that holds; `role_of`: by device.
DeviceClasses classify(std::span<const std::size_t> role_of, std::span<const AxisGroups> groups);
// Each device a class of its own.
DeviceClasses unfolded(int devices);

}  // namespace hyperrun

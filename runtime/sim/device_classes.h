// Which devices are alike: those that do the same at the same times, because their groups have the same
// shapes and the devices that they meet there are alike in turn.
#pragma once

#include <span>
#include <vector>

#include "runtime/cost/groups.h"

namespace hyperrun {

struct DeviceClasses {
  std::vector<int> class_of;  // by device
  std::vector<int> first;     // of each class: its lowest device; ascending
  std::vector<int> devices;   // of each class: how many
};

// Of each class those stay together that have the same number; both by device.
void split(std::vector<int>& class_of, std::span<const int> number);

// The coarsest classes for which that holds; `kind_of`: by device, what tells it from others by itself, as
// split() leaves it.
DeviceClasses classify(std::vector<int> kind_of, std::span<const AxisGroups> groups);
// Each device a class of its own.
DeviceClasses unfolded(int devices);

}  // namespace hyperrun

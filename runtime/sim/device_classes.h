// Classes of devices that are alike. Such devices do the same at the same times, because their groups have
// the same shapes and the devices that they meet there are alike in turn.
#pragma once

#include <span>
#include <vector>

#include "runtime/cost/groups.h"

namespace hyperrun {

struct DeviceClasses {
  std::vector<int> class_of;  // by device
  std::vector<int> first;     // by class: its lowest device; ascending
  std::vector<int> devices;   // by class: number of devices
};

// Splits the classes: devices of one class stay together if they have the same number. Both lists are by
// device.
void split(std::vector<int>& class_of, std::span<const int> number);

// Returns the coarsest such classes. `kind_of` numbers devices by what tells them apart by themselves, as
// split() leaves it.
DeviceClasses classify(std::vector<int> kind_of, std::span<const AxisGroups> groups);
// Returns classes of one device each.
DeviceClasses unfolded(int devices);

}  // namespace hyperrun

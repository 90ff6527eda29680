// How many tasks each device has, and which groups therefore have room for one more.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "runtime/tasks/device_groups.h"

namespace hyperrun::control {

class DeviceSlots {
 public:
  // window: tasks that a device has at most. `groups` outlives this and no longer grows.
  DeviceSlots(const DeviceGroups& groups, std::int32_t window);

  const DeviceGroups& groups() const { return groups_; }
  void take(GroupId group);
  void free(GroupId group);

  bool has_room(GroupId group) const { return full_[static_cast<std::size_t>(group)] == 0; }
  // Tasks of all its devices together, whatever group gave them.
  std::int64_t load(GroupId group) const { return load_[static_cast<std::size_t>(group)]; }
  // Groups with a common device, itself included.
  std::span<const GroupId> overlapping(GroupId group) const {
    return overlapping_[static_cast<std::size_t>(group)];
  }

 private:
  void change(GroupId group, std::int32_t by);

  const DeviceGroups& groups_;
  std::int32_t window_;
  std::vector<std::int32_t> tasks_;                // by rank
  std::vector<std::int32_t> full_;                 // by group: devices without room
  std::vector<std::int64_t> load_;                 // by group
  std::vector<std::vector<GroupId>> overlapping_;  // by group
};

}  // namespace hyperrun::control

// The number of tasks that each device has, and with it the groups that have room for one more.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "runtime/tasks/device_groups.h"

namespace hyperrun::tasks {

class DeviceSlots {
 public:
  // `window` is the most tasks that a device may have. `groups` outlives this and no longer grows.
  DeviceSlots(const DeviceGroups& groups, std::int32_t window);

  const DeviceGroups& groups() const { return groups_; }
  void take(GroupId group);
  void free(GroupId group);

  bool has_room(GroupId group) const { return full_[static_cast<std::size_t>(group)] == 0; }
  // Tasks of all devices of the group together, whichever group they were given to.
  std::int64_t load(GroupId group) const { return load_[static_cast<std::size_t>(group)]; }
  // Groups that share a device with this one, itself included.
  std::span<const GroupId> overlapping(GroupId group) const {
    return overlapping_[static_cast<std::size_t>(group)];
  }

 private:
  void change(GroupId group, std::int32_t by);

  const DeviceGroups& groups_;
  std::int32_t window_;
  std::vector<std::int32_t> tasks_;                // by rank
  std::vector<std::int32_t> full_;                 // by group: number of devices without room
  std::vector<std::int64_t> load_;                 // by group
  std::vector<std::vector<GroupId>> overlapping_;  // by group
};

}  // namespace hyperrun::tasks

// Groups of devices that invocations go to. A group is a set of ranks, declared once for a run; group 0 has
// all devices.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "runtime/tasks/messages.h"

namespace hyperrun::tasks {

class DeviceGroups {
 public:
  // Starts with group 0 (kEveryDevice), ranks 0 to devices - 1.
  explicit DeviceGroups(std::int32_t devices);

  // Adds a group; groups may overlap. Throws kControl if the ranks are none, not of this run, or named twice.
  GroupId add(std::vector<std::int32_t> ranks);

  std::int32_t devices() const { return static_cast<std::int32_t>(of_rank_.size()); }
  std::int32_t size() const { return static_cast<std::int32_t>(ranks_.size()); }
  bool known(GroupId group) const { return group >= 0 && group < size(); }
  std::span<const std::int32_t> ranks(GroupId group) const;  // ascending
  std::span<const GroupId> of_rank(std::int32_t rank) const;

  // True if every device of `inner` is one of `outer`.
  bool contains(GroupId outer, GroupId inner) const;

 private:
  std::vector<std::vector<std::int32_t>> ranks_;
  std::vector<std::vector<GroupId>> of_rank_;
};

}  // namespace hyperrun::tasks

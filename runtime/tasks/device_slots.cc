#include "runtime/tasks/device_slots.h"

#include "runtime/base/error.h"

namespace hyperrun::tasks {

DeviceSlots::DeviceSlots(const DeviceGroups& groups, std::int32_t window)
    : groups_(groups),
      window_(window),
      tasks_(static_cast<std::size_t>(groups.devices())),
      full_(static_cast<std::size_t>(groups.size())),
      load_(full_.size()),
      overlapping_(full_.size()) {
  HR_CHECK(window > 0);
  std::vector<GroupId> seen(full_.size(), -1);
  for (GroupId g = 0; g < groups.size(); ++g)
    for (const std::int32_t rank : groups.ranks(g))
      for (const GroupId other : groups.of_rank(rank)) {
        if (seen[static_cast<std::size_t>(other)] == g) continue;
        seen[static_cast<std::size_t>(other)] = g;
        overlapping_[static_cast<std::size_t>(g)].push_back(other);
      }
}

void DeviceSlots::take(GroupId group) {
  HR_CHECK(has_room(group));
  change(group, 1);
}

void DeviceSlots::free(GroupId group) { change(group, -1); }

void DeviceSlots::change(GroupId group, std::int32_t by) {
  for (const std::int32_t rank : groups_.ranks(group)) {
    std::int32_t& tasks = tasks_[static_cast<std::size_t>(rank)];
    const bool was_full = tasks == window_;
    tasks += by;
    HR_CHECK(tasks >= 0);
    const std::int32_t full =
        static_cast<std::int32_t>(tasks == window_) - static_cast<std::int32_t>(was_full);
    for (const GroupId other : groups_.of_rank(rank)) {
      load_[static_cast<std::size_t>(other)] += by;
      full_[static_cast<std::size_t>(other)] += full;
    }
  }
}

}  // namespace hyperrun::tasks

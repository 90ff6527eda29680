#include "runtime/tasks/device_groups.h"

#include <fmt/core.h>

#include <algorithm>
#include <numeric>
#include <string>
#include <utility>

#include "runtime/base/error.h"

namespace hyperrun::tasks {

DeviceGroups::DeviceGroups(std::int32_t devices) {
  HR_CHECK(devices > 0);
  of_rank_.resize(static_cast<std::size_t>(devices));
  std::vector<std::int32_t> all(static_cast<std::size_t>(devices));
  std::iota(all.begin(), all.end(), 0);
  add(std::move(all));
}

GroupId DeviceGroups::add(std::vector<std::int32_t> ranks) {
  std::sort(ranks.begin(), ranks.end());
  const auto refuse = [&](const std::string& why) {
    throw Error(Code::kControl, fmt::format("device group {} {}", size(), why))
        .legal("distinct ranks from 0 to " + std::to_string(devices() - 1));
  };
  if (ranks.empty()) refuse("has no device");
  if (ranks.front() < 0 || ranks.back() >= devices()) refuse("has a rank that the run does not have");
  if (std::adjacent_find(ranks.begin(), ranks.end()) != ranks.end()) refuse("has a rank twice");
  const GroupId group = size();
  for (const std::int32_t rank : ranks) of_rank_[static_cast<std::size_t>(rank)].push_back(group);
  ranks_.push_back(std::move(ranks));
  return group;
}

std::span<const std::int32_t> DeviceGroups::ranks(GroupId group) const {
  HR_CHECK(known(group));
  return ranks_[static_cast<std::size_t>(group)];
}

std::span<const GroupId> DeviceGroups::of_rank(std::int32_t rank) const {
  return of_rank_.at(static_cast<std::size_t>(rank));
}

bool DeviceGroups::contains(GroupId outer, GroupId inner) const {
  if (outer == inner || outer == kEveryDevice) return true;
  return std::ranges::includes(ranks(outer), ranks(inner));
}

}  // namespace hyperrun::tasks

#include "runtime/sim/device_classes.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <numeric>
#include <unordered_map>
#include <utility>

namespace hyperrun {
namespace {

std::size_t at(int i) { return static_cast<std::size_t>(i); }

// A number for the set of classes in its group, by device.
std::vector<int> classes_met(const AxisGroups& groups, const std::vector<int>& class_of) {
  std::map<std::vector<int>, int> known;
  std::vector<int> of_group, classes;
  for (const auto& members : groups.members) {
    classes.clear();
    for (const int d : members) classes.push_back(class_of[at(d)]);
    std::ranges::sort(classes);
    classes.erase(std::ranges::unique(classes).begin(), classes.end());
    of_group.push_back(known.try_emplace(classes, static_cast<int>(known.size())).first->second);
  }
  std::vector<int> list;
  for (const int g : groups.group_of) list.push_back(of_group[at(g)]);
  return list;
}

// A number for the shape of its group on the machine, by device.
std::vector<int> group_shapes(const AxisGroups& groups) {
  std::vector<int> of_spread, list;
  for (const AxisGroups::Spread& s : groups.spreads)
    of_spread.push_back(static_cast<int>(
        std::ranges::find(groups.spreads, s.where, &AxisGroups::Spread::where) - groups.spreads.begin()));
  for (const int g : groups.group_of) list.push_back(of_spread[at(groups.spread_of[at(g)])]);
  return list;
}

int count(const std::vector<int>& class_of) {
  return class_of.empty() ? 0 : 1 + *std::ranges::max_element(class_of);
}

// Fills in `first` and `devices`. The numbers of classes ascend with their first devices.
void find_first(DeviceClasses& classes) {
  for (std::size_t d = 0; d < classes.class_of.size(); ++d) {
    const std::size_t c = at(classes.class_of[d]);
    if (c == classes.first.size()) classes.first.push_back(static_cast<int>(d)), classes.devices.push_back(0);
    ++classes.devices[c];
  }
}

}  // namespace

// Keeps the numbers of classes dense, in the order of their first devices.
void split(std::vector<int>& class_of, std::span<const int> number) {
  std::unordered_map<std::uint64_t, int> known;
  for (std::size_t d = 0; d < class_of.size(); ++d) {
    const std::uint64_t key =
        static_cast<std::uint64_t>(class_of[d]) << 32 | static_cast<std::uint32_t>(number[d]);
    class_of[d] = known.try_emplace(key, static_cast<int>(known.size())).first->second;
  }
}

DeviceClasses classify(std::vector<int> kind_of, std::span<const AxisGroups> groups) {
  DeviceClasses classes{std::move(kind_of), {}, {}};
  for (const AxisGroups& g : groups) split(classes.class_of, group_shapes(g));
  for (int before = -1, now = count(classes.class_of); before != now;) {
    std::vector<std::vector<int>> seen;
    for (const AxisGroups& g : groups) seen.push_back(classes_met(g, classes.class_of));
    for (const auto& number : seen) split(classes.class_of, number);
    before = std::exchange(now, count(classes.class_of));
  }
  find_first(classes);
  return classes;
}

DeviceClasses unfolded(int devices) {
  DeviceClasses classes;
  classes.class_of.resize(at(devices));
  std::iota(classes.class_of.begin(), classes.class_of.end(), 0);
  find_first(classes);
  return classes;
}

}  // namespace hyperrun

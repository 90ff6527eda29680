#include "runtime/sim/device_classes.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

namespace hyperrun {
namespace {

std::size_t at(int i) { return static_cast<std::size_t>(i); }

// The classes that meet in each group, ascending.
std::vector<std::vector<int>> met(const AxisGroups& groups, const std::vector<int>& class_of) {
  std::vector<std::vector<int>> list;
  for (const auto& members : groups.members) {
    std::set<int> classes;
    for (const int d : members) classes.insert(class_of[at(d)]);
    list.emplace_back(classes.begin(), classes.end());
  }
  return list;
}

// Splits every class by what its devices see; each device sees its own class first, so that classes are
// only ever split.
DeviceClasses refine(const DeviceClasses& old, std::span<const AxisGroups> groups) {
  std::vector<std::vector<std::vector<int>>> classes_met;
  for (const AxisGroups& g : groups) classes_met.push_back(met(g, old.class_of));
  DeviceClasses out;
  std::map<std::vector<int>, int> known;
  for (std::size_t d = 0; d < old.class_of.size(); ++d) {
    std::vector<int> seen{old.class_of[d]};
    for (std::size_t k = 0; k < groups.size(); ++k) {
      const GroupShape& s = groups[k].place_of[d].shape;
      seen.insert(seen.end(), {s.p, s.hosts, s.per_host});
      const Reach& r = groups[k].reach[at(groups[k].group_of[d])];
      seen.insert(seen.end(), {r.inside, r.between});
      for (const Reach::Unit& unit : {r.inside_unit, r.between_unit})
        seen.insert(seen.end(), {static_cast<int>(unit.below), static_cast<int>(unit.members_below),
                                 static_cast<int>(unit.members)});
      const auto& classes = classes_met[k][at(groups[k].group_of[d])];
      seen.push_back(static_cast<int>(classes.size()));
      seen.insert(seen.end(), classes.begin(), classes.end());
    }
    const auto [it, is_new] = known.try_emplace(std::move(seen), static_cast<int>(out.first.size()));
    if (is_new) out.first.push_back(static_cast<int>(d));
    out.class_of.push_back(it->second);
  }
  return out;
}

}  // namespace

DeviceClasses classify(std::span<const std::size_t> role_of, std::span<const AxisGroups> groups) {
  DeviceClasses classes;
  std::map<std::size_t, int> of_role;
  for (std::size_t d = 0; d < role_of.size(); ++d) {
    const auto [it, is_new] = of_role.try_emplace(role_of[d], static_cast<int>(of_role.size()));
    if (is_new) classes.first.push_back(static_cast<int>(d));
    classes.class_of.push_back(it->second);
  }
  for (;;) {
    DeviceClasses finer = refine(classes, groups);
    if (finer.first.size() == classes.first.size()) return finer;
    classes = std::move(finer);
  }
}

DeviceClasses unfolded(int devices) {
  DeviceClasses classes;
  classes.class_of.resize(at(devices));
  std::iota(classes.class_of.begin(), classes.class_of.end(), 0);
  classes.first = classes.class_of;
  return classes;
}

}  // namespace hyperrun

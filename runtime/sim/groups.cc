#include "runtime/sim/groups.h"

#include <algorithm>
#include <map>
#include <utility>

namespace hyperrun {

std::vector<Place> places(const std::vector<int>& ranks, const Topology& topology) {
  const GroupShape shape = shape_of(ranks, topology);
  struct Host {
    int index, members;
  };
  std::map<int, Host> hosts;
  std::vector<Place> list;
  for (const int rank : ranks) {
    const int number = static_cast<int>(hosts.size());
    Host& host =
        hosts.try_emplace(topology.host_of[static_cast<std::size_t>(rank)], Host{number, 0}).first->second;
    list.push_back({.shape = shape,
                    .index = static_cast<int>(list.size()),
                    .local_index = host.members++,
                    .host_index = host.index});
  }
  return list;
}

AxisGroups::AxisGroups(const Mesh& mesh, const Topology& topology, AxisList along)
    : axes(std::move(along)),
      group_of(static_cast<std::size_t>(mesh.devices()), -1),
      place_of(static_cast<std::size_t>(mesh.devices())) {
  for (std::size_t d = 0; d < group_of.size(); ++d) {
    if (group_of[d] >= 0) continue;
    std::vector<int> ranks = mesh.group(static_cast<std::int64_t>(d), axes);
    const std::vector<Place> list = places(ranks, topology);
    for (std::size_t i = 0; i < ranks.size(); ++i) {
      group_of[static_cast<std::size_t>(ranks[i])] = static_cast<int>(members.size());
      place_of[static_cast<std::size_t>(ranks[i])] = list[i];
    }
    members.push_back(std::move(ranks));
  }
}

std::vector<AxisGroups> groups_of(std::span<const Program> programs, const Topology& topology) {
  std::vector<AxisGroups> list;
  for (const Program& program : programs)
    for (const Instr& instr : program.instrs) {
      const auto* c = std::get_if<instr::Collective>(&instr.op);
      if (c == nullptr ||
          std::any_of(list.begin(), list.end(), [&](const AxisGroups& g) { return g.axes == c->axes; }))
        continue;
      list.emplace_back(program.mesh, topology, c->axes);
    }
  return list;
}

}  // namespace hyperrun

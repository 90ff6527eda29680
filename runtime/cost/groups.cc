#include "runtime/cost/groups.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <unordered_map>
#include <utility>

namespace hyperrun {

Topology hosts_of(const Machine& machine, int devices) {
  const std::int64_t size = machine.devices_of_a_host();
  Topology topology;
  for (int d = 0; d < devices; ++d) topology.host_of.push_back(static_cast<int>(d / size));
  return topology;
}

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

namespace {

// The unit of the lowest rank, whatever the order of `ranks`, so that both ends of a message take equally
// long.
Reach::Unit unit_of(int level, const std::vector<int>& ranks, const Topology& topology,
                    const Machine& machine) {
  const int lowest = *std::ranges::min_element(ranks);
  const auto devices_of = [&](int l) {
    return l + 1 == static_cast<int>(machine.levels.size())
               ? std::int64_t{topology.size()}
               : machine.levels[static_cast<std::size_t>(l)].devices;
  };
  const auto members = [&](std::int64_t size) {
    return std::ranges::count_if(ranks, [&](int rank) { return rank / size == lowest / size; });
  };
  Reach::Unit unit;
  unit.members = members(devices_of(level));
  if (level == 0) return unit;
  const std::int64_t size = devices_of(level - 1);
  unit.below = std::min<std::int64_t>(size, topology.size() - lowest / size * size);
  unit.members_below = members(size);
  return unit;
}

}  // namespace

// On each host the lowest and the highest member are taken to be the farthest apart, because devices are
// numbered so that neighbours are close.
Reach reach_of(const std::vector<int>& ranks, const Topology& topology, const Machine& machine) {
  Reach reach;
  std::map<int, std::pair<int, int>> ends;  // by host: its lowest and its highest member
  for (const int rank : ranks) {
    auto& [low, high] =
        ends.try_emplace(topology.host_of[static_cast<std::size_t>(rank)], rank, rank).first->second;
    low = std::min(low, rank), high = std::max(high, rank);
  }
  for (const auto& [host, end] : ends)
    reach.inside = std::max(reach.inside, machine.level_between(end.first, end.second));
  const auto [low, high] = std::ranges::minmax(ranks);
  reach.between = std::max(0, machine.level_between(low, high));
  reach.inside_unit = unit_of(reach.inside, ranks, topology, machine);
  reach.between_unit = unit_of(reach.between, ranks, topology, machine);
  return reach;
}

Where where_of(const std::vector<int>& ranks, const Topology& topology, const Machine& machine) {
  return {shape_of(ranks, topology), reach_of(ranks, topology, machine)};
}

std::int64_t period_of(const Topology& topology, const Machine& machine) {
  const std::int64_t devices = topology.size();
  std::int64_t period = 1;
  if (topology.hosts() > 1) {
    const auto host = std::ranges::count(topology.host_of, topology.host_of.front());
    for (std::int64_t d = 0; d < devices; ++d)
      if (topology.host_of[static_cast<std::size_t>(d)] != d / host) return devices;
    period = host;
  }
  for (std::size_t l = 0; l + 1 < machine.levels.size(); ++l)
    period = std::min(devices, std::lcm(period, machine.levels[l].devices));
  return devices % period == 0 ? period : devices;
}

AxisGroups::AxisGroups(const Mesh& mesh, const Topology& topology, const Machine& machine,
                       std::int64_t period, AxisList along)
    : axes(std::move(along)),
      group_of(static_cast<std::size_t>(mesh.devices()), -1),
      index_of(static_cast<std::size_t>(mesh.devices())) {
  std::unordered_map<std::int64_t, int> known;  // by the begin of a group within the period
  for (std::size_t d = 0; d < group_of.size(); ++d) {
    if (group_of[d] >= 0) continue;
    std::vector<int> ranks = mesh.group(static_cast<std::int64_t>(d), axes);
    for (std::size_t i = 0; i < ranks.size(); ++i) {
      group_of[static_cast<std::size_t>(ranks[i])] = static_cast<int>(members.size());
      index_of[static_cast<std::size_t>(ranks[i])] = static_cast<int>(i);
    }
    const auto [it, is_new] =
        known.try_emplace(static_cast<std::int64_t>(d) % period, static_cast<int>(spreads.size()));
    if (is_new) spreads.push_back({where_of(ranks, topology, machine), places(ranks, topology)});
    spread_of.push_back(it->second);
    members.push_back(std::move(ranks));
  }
}

std::vector<AxisGroups> groups_of(std::span<const Program* const> programs, const Topology& topology,
                                  const Machine& machine) {
  const std::int64_t period = period_of(topology, machine);
  std::vector<AxisGroups> list;
  for (const Program* program : programs)
    for (const Instr& instr : program->instrs) {
      const auto* c = std::get_if<instr::Collective>(&instr.op);
      if (c == nullptr ||
          std::any_of(list.begin(), list.end(), [&](const AxisGroups& g) { return g.axes == c->axes; }))
        continue;
      list.emplace_back(program->mesh, topology, machine, period, c->axes);
    }
  return list;
}

}  // namespace hyperrun

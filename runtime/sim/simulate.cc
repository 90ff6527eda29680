#include "runtime/sim/simulate.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>

#include "collectives/cost.h"
#include "runtime/base/error.h"
#include "runtime/ir/collective_args.h"
#include "runtime/ir/live_bytes.h"
#include "runtime/sim/device_classes.h"
#include "runtime/sim/duration.h"
#include "runtime/sim/groups.h"

namespace hyperrun {
namespace {

std::size_t at(int i) { return static_cast<std::size_t>(i); }

const instr::Collective* collective(const Instr& instr) { return std::get_if<instr::Collective>(&instr.op); }

class Simulation {
 public:
  Simulation(const Plan& plan, std::string_view name, const SupernodeSpec& spec, const Topology& topology,
             const SimOptions& options)
      : spec_(spec), topology_(topology), mesh_(plan.mesh), devices_(topology.size()) {
    std::vector<Program> programs;
    for (const Role& role : plan.roles) programs.push_back(role.program(name));
    for (int d = 0; d < devices_; ++d) result_.role_of.push_back(plan.role_of(d));
    groups_ = groups_of(programs, topology);
    classes_ = options.fold ? classify(result_.role_of, groups_) : unfolded(devices_);
    for (Program& program : programs) {
      axes_of_.push_back(axes_of(program));
      result_.roles.push_back({.program = std::move(program)});
    }
  }

  SimResult run() {
    walk_classes();
    for (std::size_t r = 0; r < result_.roles.size(); ++r) measure_memory(result_.roles[r]);
    count_traffic();
    count_flops();
    return std::move(result_);
  }

 private:
  const Program& program(int device) const { return result_.roles[result_.role_of[at(device)]].program; }

  // Of each instruction: index into groups_, -1: no collective.
  std::vector<int> axes_of(const Program& program) const {
    std::vector<int> list;
    for (const Instr& instr : program.instrs) {
      const auto* c = collective(instr);
      const auto along = std::find_if(groups_.begin(), groups_.end(),
                                      [&](const AxisGroups& g) { return c && g.axes == c->axes; });
      list.push_back(c == nullptr ? -1 : static_cast<int>(along - groups_.begin()));
    }
    return list;
  }

  void walk_classes() {
    std::vector<Walker> walkers;
    for (const int device : classes_.first) walkers.push_back(walker(device));
    result_.classes = walk(walkers, meetings_);
    result_.class_of = classes_.class_of;
    for (const SimTimes& times : result_.classes) result_.makespan = std::max(result_.makespan, times.end);
  }

  Walker walker(int device) {
    const Program& p = program(device);
    const std::vector<int>& axes = axes_of_[result_.role_of[at(device)]];
    Walker w{&p, {}, {}};
    for (std::size_t i = 0; i < axes.size(); ++i) {
      const auto* c = collective(p.instrs[i]);
      const GroupShape shape = c == nullptr ? GroupShape{} : place(*c, axes[i], device).shape;
      w.durations.push_back(duration(p.instrs[i], mesh_, shape, spec_));
      if (c == nullptr)
        w.meetings.push_back(-1);
      else
        w.meetings.push_back(instr::is_message(c->kind) ? meeting_of_pair(*c, axes[i], device)
                                                        : meeting(axes[i], device));
    }
    return w;
  }

  int peer(const instr::Collective& c, int along, int device) const {
    const AxisGroups& groups = groups_[at(along)];
    return groups.members[at(groups.group_of[at(device)])][at(c.peer)];
  }

  // Where the device stands among those that take part.
  Place place(const instr::Collective& c, int along, int device) const {
    if (!instr::is_message(c.kind)) return groups_[at(along)].place_of[at(device)];
    return {.shape = shape_of({device, peer(c, along, device)}, topology_)};
  }

  // Walkers meet once for all groups in which the same classes meet.
  int meeting(int along, int device) {
    const AxisGroups& groups = groups_[at(along)];
    const int group = groups.group_of[at(device)];
    const auto cached = meeting_of_group_.find({along, group});
    if (cached != meeting_of_group_.end()) return cached->second;
    std::set<int> classes;
    for (const int d : groups.members[at(group)]) classes.insert(classes_.class_of[at(d)]);
    const auto size = static_cast<int>(classes.size());
    const auto [it, is_new] =
        meeting_of_classes_.try_emplace({along, std::move(classes)}, static_cast<int>(meetings_.size()));
    if (is_new) meetings_.push_back(size);
    return meeting_of_group_[{along, group}] = it->second;
  }

  // The sender's class and the receiver's.
  int meeting_of_pair(const instr::Collective& c, int along, int device) {
    std::pair<int, int> pair(classes_.class_of[at(device)], classes_.class_of[at(peer(c, along, device))]);
    if (c.kind == instr::CollectiveKind::kRecv) std::swap(pair.first, pair.second);
    const auto [it, is_new] = meeting_of_pair_.try_emplace(pair, static_cast<int>(meetings_.size()));
    if (is_new) meetings_.push_back(2);
    return it->second;
  }

  void count_traffic() {
    std::vector<std::vector<std::vector<std::size_t>>> by_kind;  // by role and kind: instructions
    for (SimRole& role : result_.roles) by_kind.push_back(find_kinds(role));
    result_.traffic.resize(at(devices_));
    std::map<std::pair<std::size_t, std::vector<int>>, std::vector<Bytes>> known;
    for (int d = 0; d < devices_; ++d) {
      const std::size_t role = result_.role_of[at(d)];
      const auto [it, is_new] = known.try_emplace({role, standing(role, d)});
      if (is_new)
        for (const auto& instrs : by_kind[role]) it->second.push_back(moved(instrs, d));
      result_.traffic[at(d)] = it->second;
    }
  }

  static std::vector<std::vector<std::size_t>> find_kinds(SimRole& role) {
    std::vector<std::vector<std::size_t>> by_kind;
    const Program& program = role.program;
    for (std::size_t i = 0; i < program.instrs.size(); ++i) {
      const auto* c = collective(program.instrs[i]);
      if (c == nullptr) continue;
      const TrafficKind kind{std::string(name(c->kind)), program.mesh.to_string(c->axes)};
      const auto found = std::find(role.kinds.begin(), role.kinds.end(), kind);
      const auto k = static_cast<std::size_t>(found - role.kinds.begin());
      if (found == role.kinds.end()) role.kinds.push_back(kind), by_kind.emplace_back();
      by_kind[k].push_back(i);
    }
    for (const auto& instrs : by_kind) role.counts.push_back(static_cast<std::int64_t>(instrs.size()));
    return by_kind;
  }

  // Devices of a role with the same places in their groups move the same bytes.
  std::vector<int> standing(std::size_t role, int device) const {
    std::set<int> seen;
    std::vector<int> list;
    const Program& p = result_.roles[role].program;
    for (std::size_t i = 0; i < p.instrs.size(); ++i) {
      const int along = axes_of_[role][i];
      if (along < 0 || !seen.insert(along).second) continue;
      const Place& place = groups_[at(along)].place_of[at(device)];
      list.insert(list.end(), {place.index, place.local_index, place.host_index, place.shape.p,
                               place.shape.hosts, place.shape.per_host});
      const AxisGroups& groups = groups_[at(along)];
      for (const int d : groups.members[at(groups.group_of[at(device)])])
        list.push_back(topology_.host_of[at(d)] == topology_.host_of[at(device)] ? 1 : 0);
    }
    return list;
  }

  Bytes moved(const std::vector<std::size_t>& instrs, int device) const {
    Bytes sum;
    for (const std::size_t i : instrs) {
      const instr::Collective& c = *collective(program(device).instrs[i]);
      const Place stands = place(c, axes_of_[result_.role_of[at(device)]][i], device);
      const CollectiveArgs args = collective_args(c, stands.shape.p);
      sum += wire_bytes(args, select(args, stands.shape), stands);
    }
    return sum;
  }

  void count_flops() {
    std::vector<Flops> of_role(result_.roles.size());
    for (std::size_t r = 0; r < of_role.size(); ++r)
      for (const Instr& instr : result_.roles[r].program.instrs)
        if (instr.stream == StreamKind::kCube) of_role[r] += work(instr, mesh_).flops;
    for (const std::size_t role : result_.role_of) result_.matrix_flops += of_role[role];
  }

  // As an arena sees it.
  static void measure_memory(SimRole& role) {
    for (const Instr& instr : role.program.instrs)
      for (const Use& use : uses(instr)) {
        const Buffer& buffer = role.program[use.operand.buffer];
        Bytes& highest = role.high_water[static_cast<std::size_t>(buffer.tier)];
        highest = std::max(highest, buffer.offset + use.operand.offset + use.operand.bytes);
      }
    const PeakUse most = peak_use(role.program);
    role.live_peak = most.bytes;
    role.live_at_peak = most.by_category;
  }

  const SupernodeSpec& spec_;
  const Topology& topology_;
  const Mesh& mesh_;
  int devices_;
  std::vector<AxisGroups> groups_;
  DeviceClasses classes_;
  std::vector<std::vector<int>> axes_of_;  // by role
  std::vector<int> meetings_;
  std::map<std::pair<int, int>, int> meeting_of_group_;
  std::map<std::pair<int, std::set<int>>, int> meeting_of_classes_;
  std::map<std::pair<int, int>, int> meeting_of_pair_;
  SimResult result_;
};

// Buffers live and die with instructions; of those that happen at one moment the earlier one in the Program
// comes first.
std::vector<std::pair<std::int64_t, std::int64_t>> live_over_time(const Program& program,
                                                                  const std::vector<Span>& spans) {
  std::vector<std::tuple<std::int64_t, std::size_t, bool>> changes;
  for (std::size_t i = 0; i < spans.size(); ++i) {
    changes.emplace_back(spans[i].begin, i, false);
    changes.emplace_back(spans[i].end, i, true);
  }
  std::sort(changes.begin(), changes.end());
  LiveBytes live(program);
  std::vector<std::pair<std::int64_t, std::int64_t>> list;
  for (const auto& [time, i, ends] : changes) {
    ends ? live.end(i) : live.begin(i);
    list.emplace_back(time, live.total().value);
  }
  return list;
}

}  // namespace

InvocationStats SimResult::stats(int device, bool traced) const {
  const SimTimes& t = times(device);
  const SimRole& role = roles[role_of[at(device)]];
  InvocationStats s;
  s.end = t.end.value;
  s.busy = t.busy;
  s.exposed = t.exposed;
  for (std::size_t k = 0; k < role.kinds.size(); ++k)
    s.traffic.push_back({role.kinds[k], role.counts[k], traffic[at(device)][k]});
  s.high_water = role.high_water[static_cast<std::size_t>(Tier::kHbm)];
  s.live_peak = role.live_peak;
  s.live_at_peak = role.live_at_peak;
  s.spans = t.spans;
  if (traced) s.hbm = live_over_time(role.program, t.spans);
  return s;
}

SimResult simulate(const Plan& plan, std::string_view program, const SupernodeSpec& spec,
                   const Topology& topology, const SimOptions& options) {
  check_rates(spec);
  if (topology.size() != plan.mesh.devices()) {
    throw Error(Code::kBadValue, "the topology has " + std::to_string(topology.size()) +
                                     " devices, the mesh " + std::to_string(plan.mesh.devices()))
        .fix("name a host for every device of the mesh");
  }
  return Simulation(plan, program, spec, topology, options).run();
}

}  // namespace hyperrun

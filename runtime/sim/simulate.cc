#include "runtime/sim/simulate.h"

#include <algorithm>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>

#include "collectives/cost.h"
#include "runtime/base/error.h"
#include "runtime/cost/duration.h"
#include "runtime/cost/groups.h"
#include "runtime/ir/collective_args.h"
#include "runtime/ir/instr_words.h"
#include "runtime/ir/live_bytes.h"
#include "runtime/sim/device_classes.h"
#include "runtime/sim/track.h"

namespace hyperrun {
namespace {

std::size_t at(int i) { return static_cast<std::size_t>(i); }

class Simulation {
 public:
  Simulation(const Plan& plan, std::string_view name, const SupernodeSpec& spec, const Topology& topology,
             const SimOptions& options)
      : machine_(machine_of(spec)),
        topology_(topology),
        mesh_(plan.mesh),
        options_(options),
        devices_(topology.size()) {
    std::vector<const Program*> programs;
    for (const Role& role : plan.roles) programs.push_back(&role.program(name));
    for (int d = 0; d < devices_; ++d) result_.role_of.push_back(plan.role_of(d));
    groups_ = groups_of(programs, topology, machine_);
    for (const Program* program : programs) {
      roles_.emplace_back(Track(*program, machine_), groups_);
      result_.roles.emplace_back();
    }
    // Hosts whose devices share cores differ by who else computes there.
    const bool hosts_differ = machine_.host_cores.value > 0 && topology.hosts() > 1;
    classes_ = options.fold && options.jitter == 0 && !hosts_differ ? classify(kinds_of_devices(), groups_)
                                                                    : unfolded(devices_);
  }

  std::vector<Nanos> durations(int device) {
    const Walker w = walker(device);
    std::vector<Nanos> list;
    for (std::size_t i = 0; i < w.track->size(); ++i) {
      const std::int32_t slot = w.track->slot(i);
      list.push_back(slot < 0 ? w.track->duration(i) : w.durations[at(slot)]);
    }
    return list;
  }

  std::vector<ExplainedInstrs> explain(int device) const {
    const RoleOfPlan& r = role(device);
    const Program& p = r.track.program();
    std::vector<ExplainedInstrs> list;
    // Equal ones may be done by kernels that do different things besides.
    std::map<std::tuple<std::string, DType, Nanos, std::size_t>, std::size_t> known;
    for (std::size_t i = 0; i < p.instrs.size(); ++i) {
      const Instr& instr = p.instrs[i];
      const DType type = instr.in.empty() ? DType::kF32 : instr.in.front().dtype;
      const auto [it, is_new] = known.try_emplace(
          {words_of(instr.op, mesh_), type, lasts(i, r, device), r.track.together(i)}, list.size());
      if (is_new) list.push_back(explained(i, std::get<0>(it->first), r, device));
      ++list[it->second].count;
    }
    std::ranges::stable_sort(list, std::greater{}, [](const ExplainedInstrs& e) { return e.each * e.count; });
    return list;
  }

  SimResult run() {
    walk_classes();
    for (std::size_t r = 0; r < roles_.size(); ++r) {
      find_kinds(r);
      measure_memory(roles_[r].track.program(), result_.roles[r]);
    }
    count_traffic();
    count_flops();
    return std::move(result_);
  }

 private:
  struct RoleOfPlan {
    Track track;
    std::vector<int> along;         // by slot: index into groups_
    std::vector<std::size_t> kind;  // by slot: index into SimRole::kinds
    std::vector<Bytes> moved;       // by kind: between tiers

    RoleOfPlan(Track t, const std::vector<AxisGroups>& groups) : track(std::move(t)) {
      for (const Track::Slot& slot : track.slots())
        along.push_back(static_cast<int>(
            std::ranges::find(groups, slot.collective().axes, &AxisGroups::axes) - groups.begin()));
    }
  };

  double slowdown(int device) const {
    const auto slow = options_.slow.find(device);
    return slow == options_.slow.end() ? 1 : slow->second;
  }

  // What tells devices apart by themselves: their role, and how slow they are.
  // By role, speed, and how far away the peers of messages are: a pair is nearer or farther than its group.
  std::vector<std::size_t> kinds_of_devices() const {
    std::vector<std::set<std::pair<int, int>>> peers(roles_.size());  // by role: along which groups, and who
    for (std::size_t r = 0; r < roles_.size(); ++r)
      for (std::size_t s = 0; s < roles_[r].along.size(); ++s)
        if (const instr::Collective& c = roles_[r].track.slots()[s].collective(); instr::is_message(c.kind))
          peers[r].emplace(roles_[r].along[s], c.peer);
    std::map<std::tuple<std::size_t, double, std::vector<std::int64_t>>, std::size_t> known;
    std::vector<std::size_t> kinds;
    for (int d = 0; d < devices_; ++d) {
      const std::size_t r = result_.role_of[at(d)];
      std::vector<std::int64_t> away;
      for (const auto& [along, peer] : peers[r]) append_distance(d, along, peer, away);
      kinds.push_back(known.try_emplace({r, slowdown(d), std::move(away)}, known.size()).first->second);
    }
    return kinds;
  }

  // As many devices in each unit of a level.
  bool units_are_whole() const {
    return std::ranges::all_of(machine_.levels, [&](const Level& l) { return devices_ % l.devices == 0; });
  }

  void append_distance(int device, int along, int peer, std::vector<std::int64_t>& away) const {
    const AxisGroups& groups = groups_[at(along)];
    const int other = groups.members[at(groups.group_of[at(device)])][at(peer)];
    if (units_are_whole()) {  // then a pair is known by the level that holds it
      away.insert(away.end(), {machine_.level_between(device, other),
                               topology_.host_of[at(device)] == topology_.host_of[at(other)] ? 1 : 0});
      return;
    }
    const std::vector<int> pair{device, other};
    const GroupShape shape = shape_of(pair, topology_);
    const Reach reach = reach_of(pair, topology_, machine_);
    away.insert(away.end(), {shape.hosts, shape.per_host, reach.inside, reach.between});
    for (const Reach::Unit& unit : {reach.inside_unit, reach.between_unit})
      away.insert(away.end(), {unit.below, unit.members_below, unit.members});
  }

  const RoleOfPlan& role(int device) const { return roles_[result_.role_of[at(device)]]; }

  ExplainedInstrs explained(std::size_t i, const std::string& what, const RoleOfPlan& r, int device) const {
    const Program& p = r.track.program();
    const Instr& instr = p.instrs[i];
    const std::int32_t slot = r.track.slot(i);
    ExplainedInstrs e{what, instr.origin < 0 ? "" : p.origins[at(instr.origin)]};
    if (instr.in.size() > 0 && instr.in.front().dtype == DType::kBF16) e.what += " bf16";
    e.each = lasts(i, r, device);
    e.reckoning =
        slot < 0 ? r.track.explain(i)
                 : r.track.explain(r.track.slots()[at(slot)],
                                   where(std::get<instr::Collective>(instr.op), r.along[at(slot)], device));
    return e;
  }

  Nanos lasts(std::size_t i, const RoleOfPlan& r, int device) const {
    const std::int32_t slot = r.track.slot(i);
    if (slot < 0) return r.track.duration(i);
    const Track::Slot& of = r.track.slots()[at(slot)];
    return r.track.duration(of, where(of.collective(), r.along[at(slot)], device));
  }

  void walk_classes() {
    std::vector<Walker> walkers;
    for (const int device : classes_.first) walkers.push_back(walker(device));
    for (const Walker& w : walkers) result_.walked += static_cast<std::int64_t>(w.track->size());
    result_.classes = walk(walkers, meetings_, machine_.host_cores.value);
    result_.class_of = classes_.class_of;
    for (const SimTimes& times : result_.classes) result_.makespan = std::max(result_.makespan, times.end);
    for (std::size_t w = 0; w < walkers.size(); ++w)
      result_.parts.push_back(
          break_down(*walkers[w].track, walkers[w].durations, result_.classes[w].spans, result_.makespan));
  }

  Walker walker(int device) {
    const RoleOfPlan& r = role(device);
    Walker w{&r.track,
             {},
             {},
             slowdown(device),
             options_.jitter,
             options_.seed * 0x9e3779b97f4a7c15 + static_cast<std::uint64_t>(device),
             topology_.host_of[at(device)],
             static_cast<int>(std::ranges::count(classes_.class_of, classes_.class_of[at(device)]))};
    for (std::size_t s = 0; s < r.along.size(); ++s) {
      const Track::Slot& slot = r.track.slots()[s];
      const instr::Collective& c = slot.collective();
      w.durations.push_back(r.track.duration(slot, where(c, r.along[s], device)));
      w.meetings.push_back(instr::is_message(c.kind) ? meeting_of_pair(c, r.along[s], device)
                                                     : meeting(r.along[s], device));
    }
    return w;
  }

  int peer(const instr::Collective& c, int along, int device) const {
    const AxisGroups& groups = groups_[at(along)];
    return groups.members[at(groups.group_of[at(device)])][at(c.peer)];
  }

  // How those lie that take part.
  Where where(const instr::Collective& c, int along, int device) const {
    const AxisGroups& groups = groups_[at(along)];
    if (!instr::is_message(c.kind))
      return {groups.place_of[at(device)].shape, groups.reach[at(groups.group_of[at(device)])]};
    const std::vector<int> pair{device, peer(c, along, device)};
    return {shape_of(pair, topology_), reach_of(pair, topology_, machine_)};
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

  // In the order in which the Program first uses them, which is that of the slots.
  void find_kinds(std::size_t r) {
    SimRole& role = result_.roles[r];
    for (const Track::Slot& slot : roles_[r].track.slots()) {
      const TrafficKind kind{std::string(name(slot.collective().kind)),
                             mesh_.to_string(slot.collective().axes)};
      const auto k = static_cast<std::size_t>(std::ranges::find(role.kinds, kind) - role.kinds.begin());
      if (k == role.kinds.size()) role.kinds.push_back(kind), role.counts.push_back(0);
      role.counts[k] += slot.count;
      roles_[r].kind.push_back(k);
    }
    for (const Instr& instr : roles_[r].track.program().instrs) {
      if (beyond_hbm(instr.op) == Tier::kHbm) continue;
      const TrafficKind kind = transfer_kind(instr.op);
      const auto k = static_cast<std::size_t>(std::ranges::find(role.kinds, kind) - role.kinds.begin());
      if (k == role.kinds.size()) role.kinds.push_back(kind), role.counts.push_back(0);
      ++role.counts[k];
      roles_[r].moved.resize(role.kinds.size());
      roles_[r].moved[k] += instr.in[0].bytes;
    }
  }

  void count_traffic() {
    std::map<std::pair<std::size_t, std::vector<int>>, Moved> known;
    for (int d = 0; d < devices_; ++d) {
      const auto [it, is_new] = known.try_emplace({result_.role_of[at(d)], standing(d)});
      if (is_new) it->second = moved(d);
      result_.traffic.push_back(it->second.by_kind);
      result_.links.push_back(it->second.by_level);
    }
  }

  // Devices of a role with the same places in their groups, and peers that lie alike, move the same bytes.
  std::vector<int> standing(int device) const {
    const RoleOfPlan& r = role(device);
    std::set<std::pair<int, int>> seen;
    std::vector<int> list;
    for (std::size_t s = 0; s < r.along.size(); ++s) {
      const instr::Collective& c = r.track.slots()[s].collective();
      const int peer = instr::is_message(c.kind) ? c.peer : -1;
      if (!seen.emplace(r.along[s], peer).second) continue;
      const Place p = place(c, r.along[s], device);
      const Reach reach = where(c, r.along[s], device).reach;
      list.insert(list.end(), {p.index, p.local_index, p.host_index, p.shape.p, p.shape.hosts,
                               p.shape.per_host, reach.inside, reach.between});
    }
    return list;
  }

  // Where the device stands among those that take part.
  Place place(const instr::Collective& c, int along, int device) const {
    if (!instr::is_message(c.kind)) return groups_[at(along)].place_of[at(device)];
    return {.shape = shape_of({device, peer(c, along, device)}, topology_)};
  }

  struct Moved {
    std::vector<Bytes> by_kind, by_level;
  };
  Moved moved(int device) const {
    const RoleOfPlan& r = role(device);
    Moved m{std::vector<Bytes>(result_.roles[result_.role_of[at(device)]].kinds.size()),
            std::vector<Bytes>(machine_.levels.size())};
    for (std::size_t k = 0; k < r.moved.size(); ++k) m.by_kind[k] += r.moved[k];
    for (std::size_t s = 0; s < r.along.size(); ++s) {
      const Track::Slot& slot = r.track.slots()[s];
      const Place stands = place(slot.collective(), r.along[s], device);
      const CollectiveArgs args = collective_args(slot.collective(), stands.shape.p);
      const Reach reach = where(slot.collective(), r.along[s], device).reach;
      const Algorithm algorithm = algorithm_on(machine_, args, {stands.shape, reach});
      const Bytes all = wire_bytes(args, algorithm, stands), inside = inside_hosts(args, algorithm, stands);
      m.by_kind[r.kind[s]] += all * slot.count;
      if (inside.value > 0) m.by_level[at(reach.inside)] += inside * slot.count;
      if (all > inside) m.by_level[at(reach.between)] += (all - inside) * slot.count;
    }
    return m;
  }

  // Of the bytes that a device moves, those that do not leave its host.
  static Bytes inside_hosts(const CollectiveArgs& args, Algorithm algorithm, const Place& stands) {
    if (algorithm == Algorithm::kOneShot || algorithm == Algorithm::kDirect)
      return wire_bytes(args, algorithm, stands);
    const int local = stands.shape.per_host;
    if (algorithm == Algorithm::kRing && args.kind == Collective::kAllReduce)
      return stands.local_index + 1 < local ? wire_bytes(args, algorithm, stands) : Bytes(0);
    if (algorithm != Algorithm::kHierarchical) return Bytes(0);
    const std::int64_t own = slice(elements(args, stands.shape.p), local, stands.local_index).size();
    return Bytes(2 * (local - 1) * own * size_of(args.dtype));
  }

  void count_flops() {
    std::vector<double> of_role(roles_.size());
    for (std::size_t r = 0; r < of_role.size(); ++r)
      for (const Instr& instr : roles_[r].track.program().instrs)
        if (instr.stream == StreamKind::kCube)
          of_role[r] += static_cast<double>(work(instr, mesh_).flops.value);
    for (const std::size_t role : result_.role_of) result_.matrix_flops += of_role[role];
  }

  // As an arena sees it.
  static void measure_memory(const Program& program, SimRole& role) {
    for (const Instr& instr : program.instrs)
      each_use(instr, [&](const Operand& operand, bool, bool) {
        const Buffer& buffer = program[operand.buffer];
        Bytes& highest = role.high_water[static_cast<std::size_t>(buffer.tier)];
        highest = std::max(highest, buffer.offset + operand.offset + operand.bytes);
      });
    const PeakUse most = peak_use(program);
    role.live_peak = most.bytes;
    role.live_at_peak = most.by_category;
  }

  const Machine machine_;
  const Topology& topology_;
  const Mesh& mesh_;
  const SimOptions& options_;
  int devices_;
  std::vector<AxisGroups> groups_;
  DeviceClasses classes_;
  std::vector<RoleOfPlan> roles_;
  std::vector<int> meetings_;
  std::map<std::pair<int, int>, int> meeting_of_group_;
  std::map<std::pair<int, std::set<int>>, int> meeting_of_classes_;
  std::map<std::pair<int, int>, int> meeting_of_pair_;
  SimResult result_;
};

// Buffers live and die with instructions; of those that happen at one moment the earlier one in the Program
// comes first.
std::array<Curve, kTiers> live_over_time(const Program& program, const std::vector<Span>& spans) {
  std::vector<std::tuple<std::int64_t, std::size_t, bool>> changes;
  for (std::size_t i = 0; i < spans.size(); ++i) {
    changes.emplace_back(spans[i].begin, i, false);
    changes.emplace_back(spans[i].end, i, true);
  }
  std::sort(changes.begin(), changes.end());
  LiveBytes live(program);
  std::array<Curve, kTiers> curves;
  for (const auto& [time, i, ends] : changes) {
    ends ? live.end(i) : live.begin(i);
    record_live(curves, time, live);
  }
  return curves;
}

}  // namespace

InvocationStats SimResult::stats(int device) const {
  const SimTimes& t = times(device);
  const SimRole& role = roles[role_of[at(device)]];
  InvocationStats s;
  s.end = t.end.value;
  s.busy = t.busy;
  s.exposed = t.exposed;
  for (std::size_t k = 0; k < role.kinds.size(); ++k)
    s.traffic.push_back({role.kinds[k], role.counts[k], traffic[at(device)][k]});
  s.high_water = role.high_water;
  s.live_peak = role.live_peak;
  s.live_at_peak = role.live_at_peak;
  return s;
}

InvocationStats SimResult::traced(int device, const Program& program) const {
  InvocationStats s = stats(device);
  s.spans = times(device).spans;
  s.live = live_over_time(program, s.spans);
  return s;
}

namespace {

const SimOptions kUnfolded{.fold = false};

void check(const SimOptions& options, int devices) {
  const auto refuse = [](const char* option, const std::string& cause, const std::string& legal) {
    throw Error(Code::kBadValue, cause).at(option).legal(legal).fix("choose a legal value");
  };
  for (const auto& [device, slowdown] : options.slow) {
    if (device < 0 || device >= devices)
      refuse("slow", "there is no device " + std::to_string(device), "0 to " + std::to_string(devices - 1));
    if (!(slowdown > 0 && slowdown <= 1e6))
      refuse("slow", "a device cannot be " + std::to_string(slowdown) + " times as slow", "above 0, to 1e6");
  }
  if (!(options.jitter >= 0 && options.jitter <= 1))
    refuse("jitter", "no jitter can be " + std::to_string(options.jitter), "0 to 1");
}

void check(const Plan& plan, const SupernodeSpec& spec, const Topology& topology) {
  check_rates(spec);
  if (topology.size() != plan.mesh.devices()) {
    throw Error(Code::kBadValue, "the topology has " + std::to_string(topology.size()) +
                                     " devices, the mesh " + std::to_string(plan.mesh.devices()))
        .fix("name a host for every device of the mesh");
  }
}

}  // namespace

std::vector<Nanos> durations(const Plan& plan, std::string_view program, const SupernodeSpec& spec,
                             const Topology& topology, int device) {
  check(plan, spec, topology);
  return Simulation(plan, program, spec, topology, kUnfolded).durations(device);
}

std::vector<ExplainedInstrs> explain(const Plan& plan, std::string_view program, const SupernodeSpec& spec,
                                     const Topology& topology, int device) {
  check(plan, spec, topology);
  return Simulation(plan, program, spec, topology, kUnfolded).explain(device);
}

SimResult simulate(const Plan& plan, std::string_view program, const SupernodeSpec& spec,
                   const Topology& topology, const SimOptions& options) {
  check(plan, spec, topology);
  check(options, topology.size());
  return Simulation(plan, program, spec, topology, options).run();
}

}  // namespace hyperrun

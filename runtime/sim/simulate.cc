#include "runtime/sim/simulate.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>

#include "runtime/base/error.h"
#include "runtime/cost/duration.h"
#include "runtime/cost/groups.h"
#include "runtime/ir/describe_instr.h"
#include "runtime/ir/live_bytes.h"
#include "runtime/ir/under_way.h"
#include "runtime/sim/device_classes.h"
#include "runtime/sim/group_topology.h"
#include "runtime/sim/live_curves.h"
#include "runtime/sim/timed_role.h"
#include "runtime/sim/traffic.h"

namespace hyperrun {
namespace {

std::size_t at(int i) { return static_cast<std::size_t>(i); }

// The Programs of this name, by role.
std::vector<const Program*> programs_of(const Plan& plan, std::string_view name) {
  std::vector<const Program*> list;
  for (const Role& role : plan.roles) list.push_back(&role.program(name));
  return list;
}

class Simulation {
 public:
  // `programs` are by role of the plan.
  Simulation(const Plan& plan, const std::vector<const Program*>& programs, const SupernodeSpec& spec,
             const Topology& topology, const SimOptions& options)
      : machine_(machine_of(spec)),
        topology_(topology),
        mesh_(plan.mesh),
        options_(options),
        devices_(topology.size()),
        group_topology_(programs, topology, machine_) {
    for (int d = 0; d < devices_; ++d) result_.role_of.push_back(plan.role_of(d));
    for (const Program* program : programs)
      roles_.emplace_back(TimedProgram(*program, machine_), group_topology_);
    // Hosts whose devices share cores differ by the other devices that compute there.
    const bool hosts_differ = machine_.host_cores.value > 0 && topology.hosts() > 1;
    classes_ = options.fold && options.jitter == 0 && !hosts_differ
                   ? classify(kinds_of_devices(), group_topology_.groups())
                   : unfolded(devices_);
  }

  std::vector<Nanos> durations(int device) {
    const SimDevice w = sim_device(device);
    std::vector<Nanos> list;
    for (std::size_t i = 0; i < w.timed->size(); ++i) {
      const std::int32_t collective = w.timed->collective_index(i);
      list.push_back(collective < 0 ? w.timed->duration(i) : w.durations[at(collective)]);
    }
    return list;
  }

  std::vector<ExplainedInstrs> explain(int device) const {
    const TimedRole& r = role(device);
    const Program& p = r.timed.program();
    std::vector<ExplainedInstrs> list;
    // Equal instructions may be parts of kernels that do different things besides.
    std::map<std::tuple<std::string, DType, Nanos, std::size_t>, std::size_t> known;
    for (std::size_t i = 0; i < p.instrs.size(); ++i) {
      const Instr& instr = p.instrs[i];
      const DType type = instr.in.empty() ? DType::kF32 : instr.in.front().dtype;
      const auto [it, is_new] = known.try_emplace(
          {describe(instr.op, mesh_), type, duration_of(i, r, device), r.timed.together(i)}, list.size());
      if (is_new) list.push_back(explained(i, std::get<0>(it->first), r, device));
      ++list[it->second].count;
    }
    std::ranges::stable_sort(list, std::greater{}, [](const ExplainedInstrs& e) { return e.each * e.count; });
    return list;
  }

  // The makespan alone. Returns `known` if every duration is the same as there.
  TimedStep timed(const TimedStep* known) {
    const std::vector<SimDevice> all = sim_devices();  // filling these finds the meetings
    TimedStep step{.durations = all_durations(all)};
    if (known != nullptr && known->durations == step.durations) return *known;
    for (const SimTimes& times : run_event_loop(all, meetings_, machine_.host_cores.value))
      step.makespan = std::max(step.makespan, times.end);
    return step;
  }

  SimResult run() {
    run_classes();
    DeviceTraffic traffic = count_traffic(roles_, result_.role_of, group_topology_, machine_);
    for (std::size_t r = 0; r < roles_.size(); ++r) {
      SimRole& role = result_.roles.emplace_back();
      role.kinds = std::move(traffic.kinds[r]);
      role.counts = std::move(traffic.counts[r]);
      measure_memory(roles_[r].timed.program(), role);
    }
    measure_communication();
    result_.traffic = std::move(traffic.by_kind);
    result_.links = std::move(traffic.by_level);
    count_flops();
    return std::move(result_);
  }

 private:
  double slowdown(int device) const {
    const auto slow = options_.slow.find(device);
    return slow == options_.slow.end() ? 1 : slow->second;
  }

  // A number for each device, by role, speed and distance to the peers of its messages.
  std::vector<int> kinds_of_devices() const {
    std::vector<int> kinds(at(devices_), 0);
    const auto split_by = [&](const auto& number) {
      std::vector<int> list;
      for (int d = 0; d < devices_; ++d) list.push_back(number(d));
      split(kinds, list);
    };
    split_by([&](int d) { return static_cast<int>(result_.role_of[at(d)]); });
    split_by([&](int d) {
      const auto slow = options_.slow.find(d);
      return slow == options_.slow.end() || slow->second == 1 ? 0 : speed_number(slow->second);
    });
    const std::vector<std::vector<std::pair<int, int>>> peers = peers_of_roles();
    std::size_t most = 0;
    for (const auto& of_role : peers) most = std::max(most, of_role.size());
    for (std::size_t i = 0; i < most; ++i)
      split_by([&](int d) {
        const auto& of_role = peers[result_.role_of[at(d)]];
        if (i >= of_role.size()) return -1;
        return group_topology_.pair(
            d, group_topology_.groups()[at(of_role[i].first)].group(d)[at(of_role[i].second)]);
      });
    return kinds;
  }

  // Equally slow devices have the same number.
  int speed_number(double slowdown) const {
    std::set<double> speeds;
    for (const auto& [device, speed] : options_.slow) speeds.insert(speed);
    return 1 + static_cast<int>(std::distance(speeds.begin(), speeds.find(slowdown)));
  }

  // The groups along which it has messages, with the peers' indices, by role.
  std::vector<std::vector<std::pair<int, int>>> peers_of_roles() const {
    std::vector<std::vector<std::pair<int, int>>> list;
    for (const TimedRole& role : roles_) {
      std::set<std::pair<int, int>> peers;
      for (std::size_t s = 0; s < role.along.size(); ++s)
        if (const instr::Collective& c = role.timed.collectives()[s].collective(); instr::is_message(c.kind))
          peers.emplace(role.along[s], c.peer);
      list.emplace_back(peers.begin(), peers.end());
    }
    return list;
  }

  const TimedRole& role(int device) const { return roles_[result_.role_of[at(device)]]; }

  ExplainedInstrs explained(std::size_t i, const std::string& what, const TimedRole& r, int device) const {
    const Program& p = r.timed.program();
    const Instr& instr = p.instrs[i];
    const std::int32_t collective = r.timed.collective_index(i);
    ExplainedInstrs e{what, instr.origin < 0 ? "" : p.origins[at(instr.origin)]};
    if (instr.in.size() > 0 && instr.in.front().dtype == DType::kBF16) e.what += " bf16";
    e.each = duration_of(i, r, device);
    e.reckoning = collective < 0
                      ? r.timed.explain(i)
                      : r.timed.explain(r.timed.collectives()[at(collective)],
                                        group_topology_.where(std::get<instr::Collective>(instr.op),
                                                              r.along[at(collective)], device));
    return e;
  }

  Nanos duration_of(std::size_t i, const TimedRole& r, int device) const {
    const std::int32_t collective = r.timed.collective_index(i);
    if (collective < 0) return r.timed.duration(i);
    const TimedProgram::DistinctCollective& of = r.timed.collectives()[at(collective)];
    return r.timed.duration(of, group_topology_.where(of.collective(), r.along[at(collective)], device));
  }

  // All durations on which the simulation depends.
  std::vector<Nanos> all_durations(const std::vector<SimDevice>& devices) const {
    std::vector<Nanos> list{Nanos(std::llround(machine_.host_cores.value * 1e6))};
    for (const TimedRole& role : roles_)
      for (std::size_t i = 0; i < role.timed.size(); ++i) {
        list.push_back(role.timed.duration(i));
        if (role.timed.fed()) list.push_back(role.timed.feeding(i));
      }
    for (const SimDevice& w : devices) list.insert(list.end(), w.durations.begin(), w.durations.end());
    return list;
  }

  std::vector<SimDevice> sim_devices() {
    std::vector<SimDevice> list;
    for (const int device : classes_.first) list.push_back(sim_device(device));
    return list;
  }

  void run_classes() {
    const std::vector<SimDevice> devices = sim_devices();
    for (const SimDevice& w : devices) result_.simulated_instrs += static_cast<std::int64_t>(w.timed->size());
    result_.classes = run_event_loop(devices, meetings_, machine_.host_cores.value);
    result_.class_of = classes_.class_of;
    for (const SimTimes& times : result_.classes) result_.makespan = std::max(result_.makespan, times.end);
    for (std::size_t w = 0; w < devices.size(); ++w)
      result_.parts.push_back(
          break_down(*devices[w].timed, devices[w].durations, result_.classes[w].spans, result_.makespan));
  }

  void measure_communication() {
    for (std::size_t c = 0; c < result_.classes.size(); ++c) {
      const std::size_t r = result_.role_of[at(classes_.first[c])];
      UnderWayByKind by_kind(roles_[r].timed.program(), result_.roles[r].kinds);
      result_.under_way.push_back(by_kind.measure(result_.classes[c].spans));
    }
  }

  SimDevice sim_device(int device) {
    const TimedRole& r = role(device);
    SimDevice w{&r.timed,
                {},
                {},
                slowdown(device),
                options_.jitter,
                options_.seed * 0x9e3779b97f4a7c15 + static_cast<std::uint64_t>(device),
                topology_.host_of[at(device)],
                classes_.devices[at(classes_.class_of[at(device)])]};
    for (std::size_t s = 0; s < r.along.size(); ++s) {
      const TimedProgram::DistinctCollective& distinct = r.timed.collectives()[s];
      const instr::Collective& c = distinct.collective();
      w.durations.push_back(r.timed.duration(distinct, group_topology_.where(c, r.along[s], device)));
      w.meetings.push_back(instr::is_message(c.kind) ? meeting_of_pair(c, r.along[s], device)
                                                     : meeting(r.along[s], device));
    }
    return w;
  }

  // Index of the meeting of the device's group. All groups in which the same classes meet share one.
  int meeting(int along, int device) {
    const AxisGroups& groups = group_topology_.groups()[at(along)];
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

  // Index of the meeting of the sender's class and the receiver's.
  int meeting_of_pair(const instr::Collective& c, int along, int device) {
    std::pair<int, int> pair(classes_.class_of[at(device)],
                             classes_.class_of[at(group_topology_.peer(c, along, device))]);
    if (c.kind == instr::CollectiveKind::kRecv) std::swap(pair.first, pair.second);
    const auto [it, is_new] = meeting_of_pair_.try_emplace(pair, static_cast<int>(meetings_.size()));
    if (is_new) meetings_.push_back(2);
    return it->second;
  }

  void count_flops() {
    std::vector<double> of_role(roles_.size());
    for (std::size_t r = 0; r < of_role.size(); ++r)
      for (const Instr& instr : roles_[r].timed.program().instrs)
        if (instr.stream == StreamKind::kCube)
          of_role[r] += static_cast<double>(work(instr, mesh_).flops.value);
    for (const std::size_t role : result_.role_of) result_.matrix_flops += of_role[role];
  }

  // Measures memory as an arena does.
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
  GroupTopology group_topology_;
  std::vector<TimedRole> roles_;
  DeviceClasses classes_;
  std::vector<int> meetings_;
  std::map<std::pair<int, int>, int> meeting_of_group_;
  std::map<std::pair<int, std::set<int>>, int> meeting_of_classes_;
  std::map<std::pair<int, int>, int> meeting_of_pair_;
  SimResult result_;
};

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
  s.under_way = under_way[at(class_of[at(device)])];
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
    throw Error(Code::kUsage, cause).at(option).legal(legal).fix("choose a legal value");
  };
  for (const auto& [device, slowdown] : options.slow) {
    if (device < 0 || device >= devices)
      refuse("--slow", fmt::format("there is no device {}", device), fmt::format("0 to {}", devices - 1));
    if (!(slowdown > 0 && slowdown <= 1e6))
      refuse("--slow", fmt::format("a device cannot be {:g} times as slow", slowdown), "above 0, to 1e6");
  }
  if (!(options.jitter >= 0 && options.jitter <= 1))
    refuse("--jitter", fmt::format("no jitter can be {:g}", options.jitter), "0 to 1");
}

void check(const Plan& plan, const SupernodeSpec& spec, const Topology& topology) {
  check_rates(spec);
  if (topology.size() != plan.mesh.devices()) {
    throw Error(Code::kBadValue,
                fmt::format("the topology has {} devices, the mesh {}", topology.size(), plan.mesh.devices()))
        .fix("name a host for every device of the mesh");
  }
}

}  // namespace

std::vector<Nanos> durations(const Plan& plan, std::string_view program, const SupernodeSpec& spec,
                             const Topology& topology, int device) {
  check(plan, spec, topology);
  return Simulation(plan, programs_of(plan, program), spec, topology, kUnfolded).durations(device);
}

std::vector<ExplainedInstrs> explain(const Plan& plan, std::string_view program, const SupernodeSpec& spec,
                                     const Topology& topology, int device) {
  check(plan, spec, topology);
  return Simulation(plan, programs_of(plan, program), spec, topology, kUnfolded).explain(device);
}

SimResult simulate(const Plan& plan, std::string_view program, const SupernodeSpec& spec,
                   const Topology& topology, const SimOptions& options) {
  check(plan, spec, topology);
  check(options, topology.size());
  return Simulation(plan, programs_of(plan, program), spec, topology, options).run();
}

TimedStep timed(const Plan& plan, std::string_view program, const SupernodeSpec& spec,
                const SimOptions& options, const TimedStep* known) {
  const Topology topology = hosts_of(machine_of(spec), static_cast<int>(plan.mesh.devices()));
  check(plan, spec, topology);
  check(options, topology.size());
  return Simulation(plan, programs_of(plan, program), spec, topology, options).timed(known);
}

Nanos makespan(const Plan& plan, std::string_view program, const SupernodeSpec& spec) {
  return timed(plan, program, spec).makespan;
}

}  // namespace hyperrun

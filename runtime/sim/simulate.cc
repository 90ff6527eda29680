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
  Simulation(const Program& program, const SupernodeSpec& spec, const Topology& topology,
             const SimOptions& options)
      : spec_(spec),
        devices_(topology.size()),
        groups_(groups_of(program, topology)),
        classes_(options.fold ? classify(devices_, groups_) : unfolded(devices_)) {
    result_.program = program;
    for (const Instr& instr : program.instrs) {
      const auto* c = collective(instr);
      const auto along = std::find_if(groups_.begin(), groups_.end(),
                                      [&](const AxisGroups& g) { return c && g.axes == c->axes; });
      axes_of_.push_back(c == nullptr ? -1 : static_cast<int>(along - groups_.begin()));
    }
  }

  SimResult run() {
    walk_classes();
    count_traffic();
    measure_memory();
    for (const Instr& instr : program().instrs)
      if (instr.stream == StreamKind::kCube) result_.matrix_flops += work(instr, program().mesh).flops;
    return std::move(result_);
  }

 private:
  const Program& program() const { return result_.program; }

  void walk_classes() {
    std::vector<Walker> walkers;
    for (const int device : classes_.first) walkers.push_back(walker(device));
    result_.classes = walk(walkers, meetings_);
    result_.class_of = classes_.class_of;
    for (const SimTimes& times : result_.classes) result_.makespan = std::max(result_.makespan, times.end);
  }

  Walker walker(int device) {
    Walker w{&program(), {}, {}};
    for (std::size_t i = 0; i < axes_of_.size(); ++i) {
      const int along = axes_of_[i];
      const GroupShape shape = along < 0 ? GroupShape{} : groups_[at(along)].place_of[at(device)].shape;
      w.durations.push_back(duration(program().instrs[i], program().mesh, shape, spec_));
      w.meetings.push_back(along < 0 ? -1 : meeting(along, device));
    }
    return w;
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

  // Devices with the same place in their group move the same bytes.
  void count_traffic() {
    result_.traffic.resize(at(devices_));
    std::vector<std::vector<std::size_t>> by_kind;
    for (std::size_t i = 0; i < axes_of_.size(); ++i) {
      const auto* c = collective(program().instrs[i]);
      if (c == nullptr) continue;
      const TrafficKind kind{std::string(name(c->kind)), program().mesh.to_string(c->axes)};
      const auto known = std::find(result_.kinds.begin(), result_.kinds.end(), kind);
      const auto k = static_cast<std::size_t>(known - result_.kinds.begin());
      if (known == result_.kinds.end()) result_.kinds.push_back(kind), by_kind.emplace_back();
      by_kind[k].push_back(i);
    }
    for (const auto& instrs : by_kind) {
      result_.counts.push_back(static_cast<std::int64_t>(instrs.size()));
      std::map<std::tuple<int, int, int, int, int, int>, Bytes> known;
      for (int d = 0; d < devices_; ++d) {
        const Place& p = groups_[at(axes_of_[instrs.front()])].place_of[at(d)];
        const auto key =
            std::tuple(p.index, p.local_index, p.host_index, p.shape.p, p.shape.hosts, p.shape.per_host);
        const auto [it, is_new] = known.try_emplace(key);
        if (is_new) it->second = moved(instrs, p);
        result_.traffic[at(d)].push_back(it->second);
      }
    }
  }

  Bytes moved(const std::vector<std::size_t>& instrs, const Place& place) const {
    Bytes sum;
    for (const std::size_t i : instrs) {
      const CollectiveArgs args = collective_args(*collective(program().instrs[i]), place.shape.p);
      sum += wire_bytes(args, select(args, place.shape), place);
    }
    return sum;
  }

  // As an arena sees it.
  void measure_memory() {
    for (const Instr& instr : program().instrs)
      for (const Use& use : uses(instr)) {
        const Buffer& buffer = program()[use.operand.buffer];
        Bytes& highest = result_.high_water[static_cast<std::size_t>(buffer.tier)];
        highest = std::max(highest, buffer.offset + use.operand.offset + use.operand.bytes);
      }
    const PeakUse most = peak_use(program());
    result_.live_peak = most.bytes;
    result_.live_at_peak = most.by_category;
  }

  const SupernodeSpec& spec_;
  int devices_;
  std::vector<AxisGroups> groups_;
  DeviceClasses classes_;
  std::vector<int> axes_of_;  // of each instruction: index into groups_, -1: no collective
  std::vector<int> meetings_;
  std::map<std::pair<int, int>, int> meeting_of_group_;
  std::map<std::pair<int, std::set<int>>, int> meeting_of_classes_;
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
  InvocationStats s;
  s.end = t.end.value;
  s.busy = t.busy;
  s.exposed = t.exposed;
  for (std::size_t k = 0; k < kinds.size(); ++k)
    s.traffic.push_back({kinds[k], counts[k], traffic[at(device)][k]});
  s.high_water = high_water[static_cast<std::size_t>(Tier::kHbm)];
  s.live_peak = live_peak;
  s.live_at_peak = live_at_peak;
  s.spans = t.spans;
  if (traced) s.hbm = live_over_time(program, t.spans);
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
  return Simulation(plan.program(program), spec, topology, options).run();
}

}  // namespace hyperrun

#include "runtime/plan/fusion.h"

#include <algorithm>
#include <map>
#include <ranges>
#include <tuple>

#include "runtime/cost/groups.h"

namespace hyperrun {
namespace {

GroupLocation location_of(const AxisGroups& groups, const Machine& machine) {
  GroupLocation location;
  std::vector<int> levels;
  for (const AxisGroups::Spread& spread : groups.spreads) {
    const Reach& reach = spread.where.reach;
    levels.push_back(reach.between);
    location.members_below = std::max(location.members_below, reach.between_unit.members_below);
  }
  std::ranges::sort(levels);
  levels.erase(std::unique(levels.begin(), levels.end()), levels.end());
  for (const int l : levels) location.levels.push_back(machine.levels[static_cast<std::size_t>(l)].name);
  return location;
}

class CollectiveReader {
 public:
  CollectiveReader(const Plan& plan, const SupernodeSpec& spec)
      : plan_(plan),
        machine_(machine_of(spec)),
        topology_(hosts_of(machine_, static_cast<int>(plan.mesh.devices()))),
        period_(period_of(topology_, machine_)) {}

  Fusion run() {
    std::int64_t stride = plan_.mesh.devices();
    for (AxisId a = 0; a < plan_.mesh.rank(); ++a) {
      const MeshAxis& axis = plan_.mesh.axes[static_cast<std::size_t>(a)];
      stride /= axis.size;
      fusion_.axes.push_back({axis.name, axis.size, stride, location_of(groups_of_axes({a}), machine_)});
    }
    for (const Role& role : plan_.roles) read(role.program("train"));
    for (FusedAxes& group : fusion_.groups)
      std::ranges::stable_sort(group.uses, std::ranges::greater(), &FusedUse::bytes);
    return std::move(fusion_);
  }

 private:
  using Key = std::tuple<AxisList, instr::CollectiveKind, Category, Pass>;

  const AxisGroups& groups_of_axes(const AxisList& axes) {
    const auto found = groups_.find(axes);
    if (found != groups_.end()) return found->second;
    return groups_.try_emplace(axes, plan_.mesh, topology_, machine_, period_, axes).first->second;
  }

  void read(const Program& program) {
    std::map<Key, FusedUse> uses;
    std::map<Key, Bytes> largest;
    std::vector<Key> order;
    std::vector<Category> holds = categories(program);
    for (const Instr& instr : program.instrs) {
      if (instr.in.empty()) continue;  // a received message is counted by its sender
      const std::size_t from = instr.in.front().buffer.index();
      for (const Operand& out : instr.out)
        if (holds[out.buffer.index()] == Category::kCommunication) holds[out.buffer.index()] = holds[from];
      const auto* c = std::get_if<instr::Collective>(&instr.op);
      if (c == nullptr) continue;
      const Buffer& buffer = program.buffers[from];
      const Key key{c->axes, c->kind, holds[from], instr.pass};
      const auto [it, is_new] = uses.try_emplace(key);
      FusedUse& use = it->second;
      if (is_new) order.push_back(key), use = {std::string(name(c->kind)), holds[from], instr.pass};
      ++use.count, use.bytes += work(instr, plan_.mesh).wire.value;
      if (Bytes& most = largest[key]; use.largest.empty() || buffer.bytes > most)
        most = buffer.bytes, use.largest = buffer.name;
    }
    for (const Key& key : order) add(std::get<AxisList>(key), uses[key]);
  }

  // Category of each buffer. Communication buffers that are reduced, moved or cast take the category of the
  // result. Other communication buffers take the category of their source, which read() fills in.
  static std::vector<Category> categories(const Program& program) {
    std::vector<Category> list;
    for (const Buffer& b : program.buffers) list.push_back(b.category);
    for (const Instr& instr : program.instrs | std::views::reverse) {
      const bool same = std::holds_alternative<instr::Collective>(instr.op) ||
                        std::holds_alternative<instr::Accumulate>(instr.op) ||
                        std::holds_alternative<instr::Cast>(instr.op);
      if (!same || instr.in.empty() || instr.out.empty()) continue;
      Category& holds = list[instr.in.front().buffer.index()];
      if (holds == Category::kCommunication) holds = list[instr.out.front().buffer.index()];
    }
    return list;
  }

  void add(const AxisList& axes, const FusedUse& use) {
    const std::string text = plan_.mesh.to_string(axes);
    auto group = std::ranges::find(fusion_.groups, text, &FusedAxes::axes);
    if (group == fusion_.groups.end()) {
      fusion_.groups.push_back(
          {text, plan_.mesh.size(axes), location_of(groups_of_axes(axes), machine_), {}});
      group = fusion_.groups.end() - 1;
    }
    const auto same = std::ranges::find_if(group->uses, [&](const FusedUse& u) {
      return u.collective == use.collective && u.moved == use.moved && u.pass == use.pass;
    });
    if (same == group->uses.end())
      group->uses.push_back(use);
    else if (same->bytes < use.bytes)
      *same = use;
  }

  const Plan& plan_;
  Machine machine_;
  Topology topology_;
  std::int64_t period_;
  std::map<AxisList, AxisGroups> groups_;
  Fusion fusion_;
};

}  // namespace

Fusion fusion_of(const Plan& plan, const SupernodeSpec& spec) { return CollectiveReader(plan, spec).run(); }

}  // namespace hyperrun

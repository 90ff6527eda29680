#include "runtime/sim/traffic.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "collectives/cost.h"
#include "runtime/cost/cost.h"
#include "runtime/ir/collective_args.h"
#include "runtime/ir/describe_instr.h"
#include "runtime/ir/touched.h"

namespace hyperrun {
namespace {

std::size_t at(int i) { return static_cast<std::size_t>(i); }

struct Moved {
  std::vector<Bytes> by_kind, by_level;

  explicit Moved(std::size_t kinds = 0, std::size_t levels = 0) : by_kind(kinds), by_level(levels) {}
  Moved& operator+=(const Moved& other) {
    for (std::size_t k = 0; k < by_kind.size(); ++k) by_kind[k] += other.by_kind[k];
    for (std::size_t l = 0; l < by_level.size(); ++l) by_level[l] += other.by_level[l];
    return *this;
  }
};

class OfRole {
 public:
  OfRole(const RoleTrack& role, const Whereabouts& whereabouts, const Machine& machine)
      : role_(role), whereabouts_(whereabouts), machine_(machine) {
    const auto& slots = role.track.slots();
    for (std::size_t s = 0; s < slots.size(); ++s) {
      const instr::Collective& c = slots[s].collective();
      kind_of_slot_.push_back(
          kind({std::string(name(c.kind)), role.track.program().mesh.to_string(c.axes)}, slots[s].count));
      const Meeting meeting{role.along[s], instr::is_message(c.kind) ? c.peer : -1};
      meetings_[meeting].slots.push_back(s);
    }
    std::vector<std::pair<std::size_t, Bytes>> transfers;
    for (const Instr& instr : role.track.program().instrs)
      if (beyond_hbm(instr.op) != Tier::kHbm)
        transfers.emplace_back(kind(transfer_kind(instr.op), 1), moved_bytes(instr));
    transfers_ = Moved(kinds_.size(), machine.levels.size());
    for (const auto& [k, bytes] : transfers) transfers_.by_kind[k] += bytes;
  }

  const std::vector<TrafficKind>& kinds() const { return kinds_; }
  const std::vector<std::int64_t>& counts() const { return counts_; }

  // Devices that stand alike where they meet others move the same bytes there.
  Moved of(int device) {
    Moved sum = transfers_;
    for (auto& [meeting, of] : meetings_) {
      const auto& [along, peer] = meeting;
      const AxisGroups& groups = whereabouts_.groups()[at(along)];
      const std::pair<int, int> stands =
          peer < 0 ? std::pair(groups.spread(device), groups.index_of[at(device)])
                   : std::pair(whereabouts_.pair(device, groups.group(device)[at(peer)]), 0);
      if (of.moved.size() <= at(stands.first)) of.moved.resize(at(stands.first) + 1);
      auto& by_index = of.moved[at(stands.first)];
      if (by_index.size() <= at(stands.second)) by_index.resize(at(stands.second) + 1);
      auto& known = by_index[at(stands.second)];
      if (!known) known = moved(of.slots, along, device);
      sum += *known;
    }
    return sum;
  }

 private:
  using Meeting = std::pair<int, int>;  // along which groups, and with whom; -1: with all of the group
  struct AtMeeting {
    std::vector<std::size_t> slots;
    std::vector<std::vector<std::optional<Moved>>> moved;  // by how those who meet lie, by place among them
  };

  std::size_t kind(const TrafficKind& kind, std::int64_t count) {
    const auto k = static_cast<std::size_t>(std::ranges::find(kinds_, kind) - kinds_.begin());
    if (k == kinds_.size()) kinds_.push_back(kind), counts_.push_back(0);
    counts_[k] += count;
    return k;
  }

  Moved moved(const std::vector<std::size_t>& slots, int along, int device) const {
    Moved m(kinds_.size(), machine_.levels.size());
    for (const std::size_t s : slots) {
      const Track::Slot& slot = role_.track.slots()[s];
      const Place stands = whereabouts_.place(slot.collective(), along, device);
      const Where where = whereabouts_.where(slot.collective(), along, device);
      const CollectiveArgs args = collective_args(slot.collective(), stands.shape.p);
      const Algorithm algorithm = algorithm_on(machine_, args, where);
      const Bytes all = wire_bytes(args, algorithm, stands),
                  inside = bytes_within_host(args, algorithm, stands);
      m.by_kind[kind_of_slot_[s]] += all * slot.count;
      if (inside.value > 0) m.by_level[at(where.reach.inside)] += inside * slot.count;
      if (all > inside) m.by_level[at(where.reach.between)] += (all - inside) * slot.count;
    }
    return m;
  }

  const RoleTrack& role_;
  const Whereabouts& whereabouts_;
  const Machine& machine_;
  std::vector<TrafficKind> kinds_;
  std::vector<std::int64_t> counts_;
  std::vector<std::size_t> kind_of_slot_;
  std::map<Meeting, AtMeeting> meetings_;
  Moved transfers_;
};

}  // namespace

DeviceTraffic count_traffic(std::span<const RoleTrack> roles, std::span<const std::size_t> role_of,
                            const Whereabouts& whereabouts, const Machine& machine) {
  DeviceTraffic traffic;
  std::vector<OfRole> of_role;
  for (const RoleTrack& role : roles) {
    const OfRole& of = of_role.emplace_back(role, whereabouts, machine);
    traffic.kinds.push_back(of.kinds());
    traffic.counts.push_back(of.counts());
  }
  for (std::size_t d = 0; d < role_of.size(); ++d) {
    Moved moved = of_role[role_of[d]].of(static_cast<int>(d));
    traffic.by_kind.push_back(std::move(moved.by_kind));
    traffic.by_level.push_back(std::move(moved.by_level));
  }
  return traffic;
}

}  // namespace hyperrun

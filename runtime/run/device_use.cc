#include "runtime/run/device_use.h"

#include <fmt/core.h>

#include <algorithm>
#include <set>
#include <string_view>
#include <tuple>

#include "runtime/base/joined.h"
#include "runtime/ir/live_bytes.h"

namespace hyperrun {
namespace {

// Adds `use` to the entry of the same kind, or as a new entry.
template <class Use>
void add(std::vector<Use>& list, const Use& use, auto kind) {
  const auto known = std::ranges::find_if(list, [&](const Use& u) { return kind(u) == kind(use); });
  if (known == list.end()) return list.push_back(use);
  known->count += use.count;
  known->bytes += use.bytes;
  if constexpr (requires { use.exposed; }) known->time += use.time, known->exposed += use.exposed;
}

}  // namespace

std::string describe_mesh(const Mesh& mesh) {
  std::vector<std::string> axes;
  for (const MeshAxis& axis : mesh.axes) axes.push_back(fmt::format("{} {}", axis.name, axis.size));
  return joined(axes, " x ");
}

std::int64_t parameters(const Plan& plan) {
  std::int64_t total = 0;
  std::set<std::string_view> counted;  // a tied weight is in the state of two stages
  for (const Role& role : plan.roles)
    for (const StateTensor& t : role.state) {
      if (t.cls != TensorClass::kWeight || !counted.insert(t.name).second) continue;
      std::int64_t n = 1;
      for (std::int64_t size : t.shape) n *= size;
      total += n;
    }
  return total;
}

namespace {

// The entry of a category, inserted if missing. The list stays in the order of the enum.
CategoryUse& category(std::vector<CategoryUse>& list, Category c) {
  auto place = list.begin();
  for (int earlier = 0; earlier < static_cast<int>(c); ++earlier)
    if (place != list.end() && place->category == name(static_cast<Category>(earlier))) ++place;
  if (place != list.end() && place->category == name(c)) return *place;
  return *list.insert(place, CategoryUse{std::string(name(c)), {}, {}});
}

// Keeps the categories of the tier's fullest moment over all invocations.
void add_live(const InvocationStats& s, TierUse& tier) {
  Bytes so_far{};
  for (const CategoryUse& use : tier.categories) so_far += use.executed;
  if (s.live_peak <= so_far) return;
  for (CategoryUse& use : tier.categories) use.executed = Bytes(0);
  for (std::size_t c = 0; c < kCategories; ++c)
    if (s.live_at_peak[c].value > 0)
      category(tier.categories, static_cast<Category>(c)).executed = s.live_at_peak[c];
}

}  // namespace

void add_memory(const InvocationStats& s, DeviceReport& device) {
  for (TierUse& tier : device.tiers)
    for (std::size_t t = 0; t < kTiers; ++t)
      if (tier.tier == name(static_cast<Tier>(t)))
        tier.executed_peak = std::max(tier.executed_peak, s.high_water[t]);
  add_live(s, device.tiers.front());
}

void add_steps(const InvocationStats& s, DeviceReport& device, std::int64_t steps) {
  device.time += Nanos(s.end - s.begin) * steps;
  device.exposed_communication += s.exposed * steps;
  for (std::size_t i = 0; i < kStreams; ++i) device.streams[i].busy += s.busy[i] * steps;
  add_memory(s, device);
  for (std::size_t k = 0; k < s.traffic.size(); ++k) {
    const Traffic& t = s.traffic[k];
    const UnderWay u = s.under_way.empty() ? UnderWay{} : s.under_way[k];
    if (t.kind.collective == "prefetch" || t.kind.collective == "store")
      add(device.transfers,
          {t.kind.collective, t.kind.axes, t.count * steps, t.bytes * steps, t.elsewhere * steps},
          [](const TransferUse& u) { return std::tie(u.transfer, u.tier); });
    else
      add(device.collectives,
          {t.kind.collective, t.kind.axes, t.count * steps, t.bytes * steps, u.time * steps,
           u.exposed * steps},
          [](const CollectiveUse& u) { return std::tie(u.collective, u.axis); });
  }
}

namespace {

std::vector<const Program*> all_programs(const Role& role) {
  std::vector<const Program*> all;
  for (const Program& p : role.programs) all.push_back(&p);
  return all;
}

}  // namespace

void set_planned(DeviceReport& device, std::span<const Program* const> programs) {
  for (TierUse& tier : device.tiers) {
    tier.planned_peak = Bytes(0);
    for (std::size_t t = 0; t < kTiers; ++t)
      if (tier.tier == name(static_cast<Tier>(t)))
        for (const Program* p : programs) tier.planned_peak = std::max(tier.planned_peak, p->peak[t]);
  }
  PeakUse most;
  for (const Program* p : programs)
    if (const PeakUse use = peak_use(*p); use.bytes > most.bytes) most = use;
  std::vector<CategoryUse>& categories = device.tiers.front().categories;
  for (CategoryUse& use : categories) use.planned = Bytes(0);
  for (std::size_t c = 0; c < kCategories; ++c)
    if (most.by_category[c].value > 0)
      category(categories, static_cast<Category>(c)).planned = most.by_category[c];
  std::erase_if(categories, [](const CategoryUse& u) { return u.planned == u.executed && !u.planned.value; });
}

DeviceReport planned_use(const Job& job, const Role& role) {
  DeviceReport device;
  device.tiers.push_back({"hbm", job.supernode.hbm, Bytes(0), Bytes(0), {}});
  for (const auto& [tier, budget] :
       {std::pair{Tier::kPool, job.supernode.pool}, {Tier::kFlash, job.supernode.flash}})
    if (role.peak(tier).value > 0)
      device.tiers.push_back({std::string(name(tier)), budget / job.supernode.devices, {}, {}, {}});
  set_planned(device, all_programs(role));
  return device;
}

}  // namespace hyperrun

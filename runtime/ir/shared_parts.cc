#include "runtime/ir/shared_parts.h"

#include <algorithm>
#include <map>
#include <utility>

namespace hyperrun {
namespace {

// A part of a tensor: for each dimension into how many pieces it is split, and which of them it is.
using Part = std::pair<std::string_view, std::vector<std::int64_t>>;

Part part_of(const Plan& plan, const StateTensor& t, std::int64_t device) {
  Part part{t.name, {}};
  for (const AxisList& axes : t.layout.dims) {
    part.second.push_back(plan.mesh.size(axes));
    part.second.push_back(plan.mesh.index(device, axes));
  }
  return part;
}

bool held_by_another_role(const Plan& plan, std::size_t role, const StateTensor& tensor) {
  for (std::size_t r = 0; r < plan.roles.size(); ++r) {
    if (r == role) continue;
    const auto same = std::ranges::find(plan.roles[r].state, tensor.name, &StateTensor::name);
    if (same != plan.roles[r].state.end() && same->layout == tensor.layout) return true;
  }
  return false;
}

}  // namespace

std::vector<SharedPart> shared_parts(const Plan& plan) {
  std::vector<SharedPart> all;
  std::map<Part, std::size_t> known;
  for (std::size_t r = 0; r < plan.roles.size(); ++r) {
    const std::vector<bool> shared = shared_state(plan, r);
    for (std::size_t t = 0; t < shared.size(); ++t) {
      const StateTensor& tensor = plan.roles[r].state[t];
      for (int d = 0; shared[t] && d < plan.mesh.devices(); ++d) {
        if (plan.role_of(d) != r) continue;
        const auto [at, is_new] = known.emplace(part_of(plan, tensor, d), all.size());
        if (is_new) all.push_back({tensor.name, {}});
        all[at->second].holders.push_back({d, t});
      }
    }
  }
  std::erase_if(all, [](const SharedPart& r) { return r.holders.size() < 2; });
  for (SharedPart& r : all) std::ranges::sort(r.holders, {}, &SharedPart::Holder::device);
  return all;
}

std::vector<bool> shared_state(const Plan& plan, std::size_t role) {
  const std::int64_t devices = plan.mesh.devices() / std::ssize(plan.roles);
  std::vector<bool> shared;
  for (const StateTensor& t : plan.roles[role].state)
    shared.push_back(plan.mesh.size(t.layout.split_axes()) < devices || held_by_another_role(plan, role, t));
  return shared;
}

}  // namespace hyperrun

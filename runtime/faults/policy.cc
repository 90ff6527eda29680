#include "runtime/faults/policy.h"

#include <algorithm>
#include <array>

namespace hyperrun {
namespace {

constexpr std::array kPolicies{
    FaultPolicy{
        .name = "stop", .meaning = "a person starts it again once all devices are there", .person = true},
    FaultPolicy{.name = "restart", .meaning = "starts by itself once all devices are there"},
    FaultPolicy{.name = "spares", .meaning = "spare devices take over", .spares = true},
    FaultPolicy{.name = "elastic", .meaning = "goes on with fewer replicas until repaired", .elastic = true},
    FaultPolicy{.name = "memory",
                .meaning = "spares, and copies of the state in other hosts' memory",
                .spares = true,
                .copies = true},
    FaultPolicy{.name = "all",
                .meaning = "spares, copies in memory, and fewer replicas once spares are used up",
                .spares = true,
                .elastic = true,
                .copies = true},
};

}  // namespace

std::span<const FaultPolicy> fault_policies() { return kPolicies; }

const FaultPolicy* find_fault_policy(std::string_view name) {
  const auto* const at = std::ranges::find(kPolicies, name, &FaultPolicy::name);
  return at == kPolicies.end() ? nullptr : at;
}

std::int32_t devices_to_go_on(const FaultPolicy& policy, const FaultedWorld& world, std::int32_t healthy) {
  if (healthy >= world.devices) return world.devices;
  return policy.elastic ? healthy / world.replica * world.replica : 0;
}

}  // namespace hyperrun

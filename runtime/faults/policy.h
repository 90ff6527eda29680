// What is done after a fault. The decisions are functions of plain values, without a clock, so that a
// simulated and an executed run can ask the same ones.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace hyperrun {

struct FaultPolicy {
  std::string_view name, meaning;
  bool person = false;   // someone has to act before it goes on
  bool spares = false;   // devices wait to take over
  bool elastic = false;  // it goes on with fewer replicas
  bool copies = false;   // the state is also in another host's memory
};

// All policies, from the least to the most.
std::span<const FaultPolicy> fault_policies();
// nullptr if there is none of that name.
const FaultPolicy* find_fault_policy(std::string_view name);

// The devices that a run wants, and the least step in which it can give some up.
struct FaultedWorld {
  std::int32_t devices = 1;  // of the whole run, without spares
  std::int32_t replica = 1;  // devices of one replica; equal to `devices` if there is one replica only
};

// The devices with which a run goes on while `healthy` devices are there, spares among them. 0: it waits.
std::int32_t devices_to_go_on(const FaultPolicy& policy, const FaultedWorld& world, std::int32_t healthy);

}  // namespace hyperrun

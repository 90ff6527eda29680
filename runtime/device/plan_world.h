// The devices of a plan among the ranks of a world: all of them, or a group whose ranks run other plans as
// well.
#pragma once

#include <vector>

#include "collectives/world.h"
#include "runtime/ir/program.h"

namespace hyperrun {

class PlanWorld {
 public:
  // Device d is rank d. The constructor is not explicit: a world is that of a plan for all its ranks.
  PlanWorld(World& world);
  // Device d is rank ranks[d]; this process is one of them. The plan's groups have keys from `first_key` on,
  // keys_of(plan) of them: plans that share a rank need keys of their own.
  PlanWorld(World& world, std::vector<int> ranks, int first_key);

  World& world() const { return *world_; }
  int device() const { return device_; }  // device of this process
  int devices() const { return static_cast<int>(ranks_.size()); }
  int rank_of(int device) const { return ranks_[static_cast<std::size_t>(device)]; }
  // Makes a group of devices of the plan, this one among them. `key` counts from 0.
  Group& make_group(int key, const std::vector<int>& devices) const;
  Group& make_group_of_all(int key) const;

 private:
  World* world_;
  std::vector<int> ranks_;
  int first_key_ = 0, device_ = 0;
};

// The lists of axes along which a plan's collectives go, in one order on all devices. Each has a group and a
// key.
std::vector<AxisList> axes_of_collectives(const Plan& plan);

// The number of keys of a plan: one for each of these, then one for all its devices.
int keys_of(const Plan& plan);

}  // namespace hyperrun

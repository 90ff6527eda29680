#include "runtime/device/plan_world.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "runtime/base/error.h"

namespace hyperrun {
namespace {

std::vector<int> numbers(int n) {
  std::vector<int> list(static_cast<std::size_t>(n));
  std::iota(list.begin(), list.end(), 0);
  return list;
}

}  // namespace

PlanWorld::PlanWorld(World& world) : PlanWorld(world, numbers(world.size()), 0) {}

PlanWorld::PlanWorld(World& world, std::vector<int> ranks, int first_key)
    : world_(&world), ranks_(std::move(ranks)), first_key_(first_key) {
  const auto own = std::ranges::find(ranks_, world.rank());
  HR_CHECK(own != ranks_.end(), "no device of the plan is this process");
  device_ = static_cast<int>(own - ranks_.begin());
}

Group& PlanWorld::make_group(int key, const std::vector<int>& devices) const {
  std::vector<int> ranks;
  ranks.reserve(devices.size());
  for (const int d : devices) ranks.push_back(ranks_[static_cast<std::size_t>(d)]);
  return world_->make_group(first_key_ + key, std::move(ranks));
}

Group& PlanWorld::make_group_of_all(int key) const { return make_group(key, numbers(devices())); }

std::vector<AxisList> axes_of_collectives(const Plan& plan) {
  std::vector<AxisList> list;
  for (const Role& role : plan.roles)  // all roles: devices of different roles number their groups alike
    for (const Program& program : role.programs)
      for (const Instr& instr : program.instrs)
        if (const auto* c = std::get_if<instr::Collective>(&instr.op); c != nullptr)
          if (std::ranges::find(list, c->axes) == list.end()) list.push_back(c->axes);
  return list;
}

int keys_of(const Plan& plan) { return static_cast<int>(axes_of_collectives(plan).size()) + 1; }

}  // namespace hyperrun

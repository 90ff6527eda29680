#include "runtime/plan/topology_straddle.h"

#include <ranges>
#include <utility>

#include "runtime/base/error.h"

namespace hyperrun {

std::optional<TopologyStraddle> topology_straddle(const Strategy& strategy, const Machine& machine) {
  const int stages = strategy[PlanAxis::kPipeline];
  const auto devices = static_cast<int>(strategy.devices() / stages);
  for (const Level& level : machine.levels | std::views::reverse | std::views::drop(1)) {
    TopologyStraddle found{std::vector<bool>(static_cast<std::size_t>(stages)), 0, 0, devices};
    for (int s = 0; s < stages; ++s) {
      const int begin = s * devices, unit = (begin / level.devices + 1) * level.devices;
      if (unit >= begin + devices) continue;
      if (found.unit == 0) found.begin = begin, found.unit = unit;
      found.stages[static_cast<std::size_t>(s)] = true;
    }
    if (found.unit > 0) return found;
  }
  return std::nullopt;
}

std::optional<int> widest_unit(const Machine& machine, int devices) {
  for (const Level& level : machine.levels | std::views::reverse | std::views::drop(1))
    if (level.devices < devices) return static_cast<int>(level.devices);
  return std::nullopt;
}

namespace {

// True if two neighbouring axes of `both` devices together, whose inner one has stride `inside`, can be
// swapped.
bool may_change_places(std::int64_t both, std::int64_t inside, std::int64_t devices, const Machine& machine) {
  std::int64_t below = 1;
  for (const Level& level : machine.levels) {
    const bool has_all = &level == &machine.levels.back() || level.devices >= devices;
    if (inside % below == 0 && (has_all || level.devices % (both * inside) == 0)) return true;
    below = level.devices;
  }
  return false;
}

}  // namespace

Strategy in_first_order(Strategy s, const Machine& machine) {
  for (bool changed = true; changed;) {
    changed = false;
    std::int64_t inside = 1;
    for (std::size_t i = s.order.size() - 1; i > 0; --i) {
      PlanAxis &outer = s.order[i - 1], &inner = s.order[i];
      if (outer > inner && may_change_places(s[outer] * s[inner], inside, s.devices(), machine))
        std::swap(outer, inner), changed = true;
      inside *= s[inner];
    }
  }
  return s;
}

OutermostAxis outermost_axis(PlanAxis axis, const Strategy& strategy, const TopologyStraddle& where) {
  return {axis, where.devices / strategy[axis], where.begin, where.unit};
}

std::vector<int> ranks_along(const OutermostAxis& axis, int size, int beside) {
  HR_CHECK(size > 1 && beside <= axis.stride);
  // The straddling pair is the last rank before the unit and its neighbour, or the first rank of the unit and
  // the one before.
  const int before = axis.unit - 1 - axis.begin;
  const int one = before / axis.stride + 1 < size ? before : before + 1;
  const int first = axis.begin + one % axis.stride / beside * beside;
  std::vector<int> ranks;
  for (int n = 0; n < size; ++n)
    for (int b = 0; b < beside; ++b) ranks.push_back(first + n * axis.stride + b);
  return ranks;
}

}  // namespace hyperrun

#include "runtime/plan/order_bounds.h"

#include <algorithm>
#include <limits>
#include <numeric>

namespace hyperrun {

OrderBounds::OrderBounds(const Job& job, LayerProfileCache& cache) : job_(job), cache_(cache) {}

OrderBounds::Bound OrderBounds::of(const Strategy& s) {
  Known known = known_of(s, true);
  if (known.profiles.base == nullptr) return {};
  Bound bound;
  if (!known.straddle) {
    bound.in_any_order = bound_of(s, known.profiles, known.placement);
    bound.bound_with_extra =
        std::min(bound.in_any_order, bound_with_extra(s, known.profiles, known.placement));
    return bound;
  }
  bound.in_any_order = bound.bound_with_extra = std::numeric_limits<double>::infinity();
  for (const PlanAxis axis : s.order) {
    if (!may_be_outermost(s, axis)) continue;
    place(known, s, axis, true);
    const double least = bound_of(s, known.profiles, known.placement);
    bound.in_any_order = std::min(bound.in_any_order, least);
    bound.bound_with_extra =
        std::min({bound.bound_with_extra, least, bound_with_extra(s, known.profiles, known.placement)});
  }
  bound_inner_orders(known, s, bound);
  return bound;
}

// Bounds of orders in which another axis is slower than the pipeline. If the devices span two units or more,
// each group along that axis straddles two. Otherwise some groups do not.
void OrderBounds::bound_inner_orders(Known& known, const Strategy& s, Bound& bound) {
  if (s[PlanAxis::kPipeline] == 1) return;
  const auto devices = static_cast<int>(s.devices());
  const auto take = [&] {
    const double least = bound_of(s, known.profiles, known.placement);
    bound.in_any_order = std::min(bound.in_any_order, least);
    bound.bound_with_extra =
        std::min({bound.bound_with_extra, least, bound_with_extra(s, known.profiles, known.placement)});
  };
  const std::optional<int> unit = widest_unit(cache_.machine(), devices);
  if (!unit || devices < 2 * *unit) {
    known.placement.straddles.clear();
    return take();
  }
  known.placement.straddles.assign(known.placement.straddles.size(), true);
  for (const PlanAxis axis : s.order) {
    if (!may_be_outermost(s, axis)) continue;
    const OutermostAxis o{axis, devices / s[axis], 0, *unit};
    known.placement.straddling_profiles = profiles_of(s, o),
    known.placement.straddling_traffic = traffic_of(s, {&o, true});
    take();
  }
}

double OrderBounds::in_own_order(const Strategy& s) {
  const bool evenly = is_spread_evenly(s);
  Known known = known_of(s, evenly);
  if (known.profiles.base == nullptr) return 0;
  if (known.straddle)
    place(known, s, *std::ranges::find_if(s.order, [&](PlanAxis a) { return may_be_outermost(s, a); }),
          evenly);
  return bound_of(s, known.profiles, known.placement);
}

OrderBounds::Known OrderBounds::known_of(const Strategy& s, bool evenly) {
  Known known{profiles_of(s), {}, std::nullopt};
  if (known.profiles.base == nullptr) return known;
  known.placement.traffic = traffic_of(s, {nullptr, evenly});
  known.straddle = topology_straddle(s, cache_.machine());
  if (known.straddle) known.placement.straddles = known.straddle->stages;
  return known;
}

void OrderBounds::place(Known& known, const Strategy& s, PlanAxis axis, bool evenly) {
  const OutermostAxis o = outermost_axis(axis, s, *known.straddle);
  known.placement.straddling_profiles = profiles_of(s, o);
  known.placement.straddling_traffic = traffic_of(s, {&o, evenly});
}

bool OrderBounds::may_be_outermost(const Strategy& s, PlanAxis axis) {
  return axis != PlanAxis::kPipeline && s[axis] > 1;
}

StepProfiles OrderBounds::profiles_of(const Strategy& s) {
  StepProfiles profiles{cache_.bound_profile(s), nullptr};
  if (!may_recompute_extra(s, job_.model.layers)) return profiles;
  Strategy more = s;
  more.recompute = *stronger_recompute(s.recompute);
  profiles.extra = cache_.bound_profile(more);
  return profiles;
}

StepProfiles OrderBounds::profiles_of(const Strategy& s, const OutermostAxis& axis) {
  StepProfiles profiles{cache_.bound_profile(s, axis), nullptr};
  if (!may_recompute_extra(s, job_.model.layers)) return profiles;
  Strategy more = s;
  more.recompute = *stronger_recompute(s.recompute);
  profiles.extra = cache_.bound_profile(more, axis);
  return profiles;
}

double OrderBounds::bound_of(const Strategy& s, const StepProfiles& profiles,
                             const AxisPlacement& placement) const {
  return closed_form_bound(s, job_.model, micro_batches(s, job_.training.batch), profiles, &placement).bound;
}

double OrderBounds::bound_with_extra(const Strategy& s, const StepProfiles& profiles,
                                     const AxisPlacement& placement) const {
  if (profiles.extra == nullptr) return std::numeric_limits<double>::infinity();
  return hyperrun::bound_with_extra(s, job_.model, micro_batches(s, job_.training.batch), profiles,
                                    &placement);
}

DataTraffic OrderBounds::traffic_of(const Strategy& s, const GroupPlacement& groups) {
  Strategy expert = s;
  expert[PlanAxis::kExpert] = 1;
  const auto of_tokens_only = [&](const Strategy& of) {
    const bool is_outermost = groups.outermost != nullptr && token_devices(of, groups.outermost->axis) > 1;
    return GroupPlacement{is_outermost ? groups.outermost : nullptr, groups.evenly};
  };
  const GroupPlacement all = of_tokens_only(s);
  const Exchange usual = exchange_along(s, Widths::kOne, all);
  const bool is_alike =
      splits_at_once(s, job_.model, Widths::kOne) == splits_at_once(s, job_.model, Widths::kTwo);
  return {.usual = usual,
          .wide = is_alike ? usual : exchange_along(s, Widths::kTwo, all),
          .expert = exchange_along(expert, Widths::kTwo, of_tokens_only(expert)),
          .reduce_narrow = reduce_narrow(s, all),
          .scatters = s.zero >= 2 && s.zero_devices() > 1 && splits_at_once(s, job_.model, Widths::kOne)};
}

// Without ZeRO, gradients are reduced over all data axes at once. With ZeRO, if one dimension divides by all
// axes, gradients are scattered over one axis after another, and weights are gathered over all at once.
Exchange OrderBounds::exchange_along(const Strategy& s, Widths widths, const GroupPlacement& groups) {
  const int devices = s.zero_devices();
  if (devices == 1) return {};
  const OutermostAxis* axis = groups.outermost;
  const GroupPlacement beside{nullptr, groups.evenly};
  const auto of_all = [&](instr::CollectiveKind kind) {
    if (axis == nullptr) return per_byte(s, kind, devices, 1, beside);
    return per_byte(s, kind, s[axis->axis], devices / s[axis->axis], groups);
  };
  if (s.zero == 0) return {.reduce = sent_share(s) * of_all(instr::CollectiveKind::kAllReduce)};
  if (!splits_at_once(s, job_.model, widths))
    return axis == nullptr ? Exchange{} : exchange_along_outermost(s, *axis, groups);
  Exchange all;
  double left = sent_share(s);
  for (const PlanAxis a : kTokenAxes) {
    if (s[a] == 1) continue;
    all.reduce += left * per_byte(s, instr::CollectiveKind::kReduceScatter, s[a], 1,
                                  axis != nullptr && axis->axis == a ? groups : beside);
    left /= s[a];
  }
  all.reduce_in_pass = s.zero >= 2 ? all.reduce : 0;
  all.gather = of_all(instr::CollectiveKind::kAllGather);
  return all;
}

// The gradient has at least the part that the other axes leave.
Exchange OrderBounds::exchange_along_outermost(const Strategy& s, const OutermostAxis& axis,
                                               const GroupPlacement& groups) {
  if (!splits_along(s, job_.model, axis.axis)) return {.reduce = reduce_narrow(s, groups)};
  const auto least = [&](instr::CollectiveKind kind) {
    return per_byte(s, kind, s[axis.axis], 1, groups) * s[axis.axis] / s.zero_devices();
  };
  Exchange part;
  part.reduce = sent_share(s) * least(instr::CollectiveKind::kReduceScatter);
  part.reduce_in_pass = s.zero >= 2 ? part.reduce : 0;
  part.gather = least(instr::CollectiveKind::kAllGather);
  return part;
}

// A reduction once a step, rounded first if gradients are sent in 16 bits, whatever becomes of scattered
// gradients.
double OrderBounds::reduce_narrow(const Strategy& s, const GroupPlacement& groups) {
  const int devices = s.zero_devices();
  if (devices == 1) return 0;
  if (s.zero == 0) return exchange_along(s, Widths::kOne, groups).reduce;
  if (groups.outermost == nullptr) return 0;
  const int slow = s[groups.outermost->axis];
  const double scattered =
      per_byte(s, instr::CollectiveKind::kReduceScatter, slow, 1, groups) * slow / devices;
  const double rounded = job_.parallel.gradients == kBfloat16 ? 0.5 : 1;
  return rounded * std::min(scattered, least_all_reduce(s, devices, slow, groups));
}

// ZeRO 2 and 3 scatter in each pass without rounding.
double OrderBounds::sent_share(const Strategy& s) const {
  return s.zero < 2 && job_.parallel.gradients == kBfloat16 ? 0.5 : 1;
}

// If no dimension divides along the axis, gradients are all-reduced along it and any of the others at once,
// after being scattered over the rest. Between hosts an all-reduce may be cheaper than a reduce-scatter, as
// only the sum of each host is exchanged (collectives/selection.h).
double OrderBounds::least_all_reduce(const Strategy& s, int devices, int slow, const GroupPlacement& groups) {
  std::vector<int> beside{1};
  for (const PlanAxis a : kTokenAxes) {
    if (a == groups.outermost->axis || s[a] == 1) continue;
    for (std::size_t i = 0, end = beside.size(); i < end; ++i) beside.push_back(beside[i] * s[a]);
  }
  double least = std::numeric_limits<double>::infinity();
  for (const int b : beside)
    least =
        std::min(least, per_byte(s, instr::CollectiveKind::kAllReduce, slow, b, groups) * b * slow / devices);
  return least;
}

// True if the first group along the data axes, with or without the axes that repeat tensors, has the same
// number of devices on every host in the strategy's own order.
bool OrderBounds::is_spread_evenly(const Strategy& s) {
  if (s.devices() / s[PlanAxis::kPipeline] <= cache_.machine().devices_of_a_host()) return true;
  const auto [known, is_new] = evenly_.try_emplace({s.sizes, s.order});
  if (!is_new) return known->second;
  const Mesh mesh{mesh_of(s)};
  AxisList tokens, copies;
  for (const PlanAxis a : s.order) {
    if (s[a] == 1 || a == PlanAxis::kPipeline) continue;
    copies.push_back(mesh.find(axis_name(s, a)));
    if (std::ranges::find(kTokenAxes, a) != kTokenAxes.end()) tokens.push_back(copies.back());
  }
  return known->second =
             cache_.is_spread_evenly(mesh.group(0, tokens)) || cache_.is_spread_evenly(mesh.group(0, copies));
}

// Devices along the axis if it splits tokens, else 1.
int OrderBounds::token_devices(const Strategy& s, PlanAxis axis) {
  return std::ranges::find(kTokenAxes, axis) == kTokenAxes.end() ? 1 : s[axis];
}

// Tensors repeated over tensor axes are reduced along these as well. A larger group has more links in a mesh.
double OrderBounds::per_byte(const Strategy& s, instr::CollectiveKind kind, int devices, int beside,
                             const GroupPlacement& groups) {
  const int tensor = s[PlanAxis::kTensor] * s[PlanAxis::kTensorY];
  return std::min(per_byte(kind, devices, beside, groups), per_byte(kind, devices, beside * tensor, groups));
}

double OrderBounds::per_byte(instr::CollectiveKind kind, int devices, int beside,
                             const GroupPlacement& groups) {
  const OutermostAxis o = groups.outermost == nullptr ? OutermostAxis{} : *groups.outermost;
  const auto [known, is_new] =
      per_byte_.try_emplace({kind, devices, beside, o.stride, o.begin, o.unit, groups.evenly});
  if (!is_new) return known->second;
  std::vector<int> ranks(static_cast<std::size_t>(devices * beside));
  std::iota(ranks.begin(), ranks.end(), 0);
  if (groups.outermost != nullptr) ranks = ranks_along(o, devices, beside);
  return known->second = cache_.time_per_byte(kind, ranks, groups.evenly);
}

}  // namespace hyperrun

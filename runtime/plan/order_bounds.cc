#include "runtime/plan/order_bounds.h"

#include <algorithm>
#include <limits>
#include <numeric>

namespace hyperrun {

OrderBounds::OrderBounds(const Job& job, PieceTable& table) : job_(job), table_(table) {}

OrderBounds::Bound OrderBounds::of(const Strategy& s) {
  Known known = known_of(s, true);
  if (known.pieces.pieces == nullptr) return {};
  Bound bound;
  if (!known.straddling) {
    bound.in_any = bound_of(s, known.pieces, known.lying);
    bound.of_more = std::min(bound.in_any, bound_of_more(s, known.pieces, known.lying));
    return bound;
  }
  bound.in_any = bound.of_more = std::numeric_limits<double>::infinity();
  for (const PlanAxis axis : s.order) {
    if (!may_be_outermost(s, axis)) continue;
    lie(known, s, axis, true);
    const double least = bound_of(s, known.pieces, known.lying);
    bound.in_any = std::min(bound.in_any, least);
    bound.of_more = std::min({bound.of_more, least, bound_of_more(s, known.pieces, known.lying)});
  }
  look_inside(known, s, bound);
  return bound;
}

// Where another axis is the slowest of all devices, and the stages' lies within it. Of a machine of two units
// and more each group along it is of two of them; of fewer devices some are not.
void OrderBounds::look_inside(Known& known, const Strategy& s, Bound& bound) {
  if (s[PlanAxis::kPipeline] == 1) return;
  const auto devices = static_cast<int>(s.devices());
  const auto take = [&] {
    const double least = bound_of(s, known.pieces, known.lying);
    bound.in_any = std::min(bound.in_any, least);
    bound.of_more = std::min({bound.of_more, least, bound_of_more(s, known.pieces, known.lying)});
  };
  const std::optional<int> unit = widest_unit(table_.machine(), devices);
  if (!unit || devices < 2 * *unit) {
    known.lying.apart.clear();
    return take();
  }
  known.lying.apart.assign(known.lying.apart.size(), true);
  for (const PlanAxis axis : s.order) {
    if (!may_be_outermost(s, axis)) continue;
    const Outermost o{axis, devices / s[axis], 0, *unit};
    known.lying.pieces_apart = pieces_of(s, o), known.lying.data_apart = traffic(s, {&o, true});
    take();
  }
}

double OrderBounds::as_it_is(const Strategy& s) {
  const bool evenly = lies_evenly(s);
  Known known = known_of(s, evenly);
  if (known.pieces.pieces == nullptr) return 0;
  if (known.straddling)
    lie(known, s, *std::ranges::find_if(s.order, [&](PlanAxis a) { return may_be_outermost(s, a); }), evenly);
  return bound_of(s, known.pieces, known.lying);
}

OrderBounds::Known OrderBounds::known_of(const Strategy& s, bool evenly) {
  Known known{pieces_of(s), {}, std::nullopt};
  if (known.pieces.pieces == nullptr) return known;
  known.lying.data = traffic(s, {nullptr, evenly});
  known.straddling = straddling(s, table_.machine());
  if (known.straddling) known.lying.apart = known.straddling->stages;
  return known;
}

void OrderBounds::lie(Known& known, const Strategy& s, PlanAxis axis, bool evenly) {
  const Outermost o = outermost(axis, s, *known.straddling);
  known.lying.pieces_apart = pieces_of(s, o);
  known.lying.data_apart = traffic(s, {&o, evenly});
}

bool OrderBounds::may_be_outermost(const Strategy& s, PlanAxis axis) {
  return axis != PlanAxis::kPipeline && s[axis] > 1;
}

LayersPieces OrderBounds::pieces_of(const Strategy& s) {
  LayersPieces pieces{table_.find_least(s), nullptr};
  if (!may_recompute_more(s, job_.model.layers)) return pieces;
  Strategy more = s;
  more.recompute = *next_after(s.recompute);
  pieces.deeper = table_.find_least(more);
  return pieces;
}

LayersPieces OrderBounds::pieces_of(const Strategy& s, const Outermost& axis) {
  LayersPieces pieces{table_.find_least(s, axis), nullptr};
  if (!may_recompute_more(s, job_.model.layers)) return pieces;
  Strategy more = s;
  more.recompute = *next_after(s.recompute);
  pieces.deeper = table_.find_least(more, axis);
  return pieces;
}

double OrderBounds::bound_of(const Strategy& s, const LayersPieces& pieces, const Lying& lying) const {
  return least_form(s, job_.model, micro_batches(s, job_.training.batch), pieces, &lying).bound;
}

double OrderBounds::bound_of_more(const Strategy& s, const LayersPieces& pieces, const Lying& lying) const {
  if (pieces.deeper == nullptr) return std::numeric_limits<double>::infinity();
  return hyperrun::bound_of_more(s, job_.model, micro_batches(s, job_.training.batch), pieces, &lying);
}

DataTraffic OrderBounds::traffic(const Strategy& s, const Ways& ways) {
  Strategy spread = s;
  spread[PlanAxis::kExpert] = 1;
  const auto of_tokens_only = [&](const Strategy& of) {
    const bool is_outermost = ways.outermost != nullptr && of_tokens(of, ways.outermost->axis) > 1;
    return Ways{is_outermost ? ways.outermost : nullptr, ways.evenly};
  };
  const Ways all = of_tokens_only(s);
  const Exchange usual = along(s, Widths::kOne, all);
  const bool is_alike =
      splits_at_once(s, job_.model, Widths::kOne) == splits_at_once(s, job_.model, Widths::kTwo);
  return {.usual = usual,
          .wide = is_alike ? usual : along(s, Widths::kTwo, all),
          .spread = along(spread, Widths::kTwo, of_tokens_only(spread)),
          .reduce_narrow = reduce_narrow(s, all),
          .scatters = s.zero >= 2 && s.zero_devices() > 1 && splits_at_once(s, job_.model, Widths::kOne)};
}

// Without ZeRO all axes that repeat weights add gradients up together. With it a weight lies in parts along
// one dimension, if one divides: gradients are scattered over one axis after the other, and weights gathered
// over all at once.
Exchange OrderBounds::along(const Strategy& s, Widths widths, const Ways& ways) {
  const int devices = s.zero_devices();
  if (devices == 1) return {};
  const Outermost* axis = ways.outermost;
  const Ways beside{nullptr, ways.evenly};
  const auto of_all = [&](instr::CollectiveKind kind) {
    if (axis == nullptr) return per_byte(s, kind, devices, 1, beside);
    return per_byte(s, kind, s[axis->axis], devices / s[axis->axis], ways);
  };
  if (s.zero == 0) return {.reduce = sent(s) * of_all(instr::CollectiveKind::kAllReduce)};
  if (!splits_at_once(s, job_.model, widths))
    return axis == nullptr ? Exchange{} : along_outermost(s, *axis, ways);
  Exchange all;
  double left = sent(s);
  for (const PlanAxis a : kOfTokens) {
    if (s[a] == 1) continue;
    all.reduce += left * per_byte(s, instr::CollectiveKind::kReduceScatter, s[a], 1,
                                  axis != nullptr && axis->axis == a ? ways : beside);
    left /= s[a];
  }
  all.reduce_in_pass = s.zero >= 2 ? all.reduce : 0;
  all.gather = of_all(instr::CollectiveKind::kAllGather);
  return all;
}

// It has at least what the others leave.
Exchange OrderBounds::along_outermost(const Strategy& s, const Outermost& axis, const Ways& ways) {
  if (!splits_along(s, job_.model, axis.axis)) return {.reduce = reduce_narrow(s, ways)};
  const auto least = [&](instr::CollectiveKind kind) {
    return per_byte(s, kind, s[axis.axis], 1, ways) * s[axis.axis] / s.zero_devices();
  };
  Exchange part;
  part.reduce = sent(s) * least(instr::CollectiveKind::kReduceScatter);
  part.reduce_in_pass = s.zero >= 2 ? part.reduce : 0;
  part.gather = least(instr::CollectiveKind::kAllGather);
  return part;
}

// Once a step, and rounded before if gradients are sent so, whatever becomes of those that ZeRO scatters.
double OrderBounds::reduce_narrow(const Strategy& s, const Ways& ways) {
  const int devices = s.zero_devices();
  if (devices == 1) return 0;
  if (s.zero == 0) return along(s, Widths::kOne, ways).reduce;
  if (ways.outermost == nullptr) return 0;
  const int slow = s[ways.outermost->axis];
  const double scattered = per_byte(s, instr::CollectiveKind::kReduceScatter, slow, 1, ways) * slow / devices;
  const double rounded = job_.parallel.gradients == kBfloat16 ? 0.5 : 1;
  return rounded * std::min(scattered, least_all_reduce(s, devices, slow, ways));
}

// What ZeRO 2 and 3 scatter in each pass is not rounded.
double OrderBounds::sent(const Strategy& s) const {
  return s.zero < 2 && job_.parallel.gradients == kBfloat16 ? 0.5 : 1;
}

// What no dimension is split along the axis for is added up along it and any of the others at once; these
// have scattered it over the rest. Between hosts that may take less than to scatter it: only the sum of what
// each host has is exchanged (collectives/selection.h).
double OrderBounds::least_all_reduce(const Strategy& s, int devices, int slow, const Ways& ways) {
  std::vector<int> beside{1};
  for (const PlanAxis a : kOfTokens) {
    if (a == ways.outermost->axis || s[a] == 1) continue;
    for (std::size_t i = 0, end = beside.size(); i < end; ++i) beside.push_back(beside[i] * s[a]);
  }
  double least = std::numeric_limits<double>::infinity();
  for (const int b : beside)
    least =
        std::min(least, per_byte(s, instr::CollectiveKind::kAllReduce, slow, b, ways) * b * slow / devices);
  return least;
}

// In its own order, of what splits tokens: the first group, with what lies beside it in copies or without.
bool OrderBounds::lies_evenly(const Strategy& s) {
  if (s.devices() / s[PlanAxis::kPipeline] <= table_.machine().devices_of_a_host()) return true;
  const auto [known, is_new] = evenly_.try_emplace({s.sizes, s.order});
  if (!is_new) return known->second;
  const Mesh mesh{mesh_of(s)};
  AxisList tokens, copies;
  for (const PlanAxis a : s.order) {
    if (s[a] == 1 || a == PlanAxis::kPipeline) continue;
    copies.push_back(mesh.find(axis_name(s, a)));
    if (std::ranges::find(kOfTokens, a) != kOfTokens.end()) tokens.push_back(copies.back());
  }
  return known->second =
             table_.lies_evenly(mesh.group(0, tokens)) || table_.lies_evenly(mesh.group(0, copies));
}

// Devices along the axis where it splits tokens, else 1.
int OrderBounds::of_tokens(const Strategy& s, PlanAxis axis) {
  return std::ranges::find(kOfTokens, axis) == kOfTokens.end() ? 1 : s[axis];
}

// What lies over tensor axes in copies is exchanged along these as well, and in a mesh a larger group has
// more links.
double OrderBounds::per_byte(const Strategy& s, instr::CollectiveKind kind, int devices, int beside,
                             const Ways& ways) {
  const int tensor = s[PlanAxis::kTensor] * s[PlanAxis::kTensorY];
  return std::min(per_byte(kind, devices, beside, ways), per_byte(kind, devices, beside * tensor, ways));
}

double OrderBounds::per_byte(instr::CollectiveKind kind, int devices, int beside, const Ways& ways) {
  const Outermost o = ways.outermost == nullptr ? Outermost{} : *ways.outermost;
  const auto [known, is_new] =
      per_byte_.try_emplace({kind, devices, beside, o.apart, o.begin, o.unit, ways.evenly});
  if (!is_new) return known->second;
  std::vector<int> ranks(static_cast<std::size_t>(devices * beside));
  std::iota(ranks.begin(), ranks.end(), 0);
  if (ways.outermost != nullptr) ranks = ranks_along(o, devices, beside);
  return known->second = table_.time_per_byte(kind, ranks, ways.evenly);
}

}  // namespace hyperrun

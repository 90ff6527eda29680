#include "runtime/plan/order_bounds.h"

#include <algorithm>
#include <array>
#include <limits>
#include <numeric>

namespace hyperrun {
namespace {

// In the order in which ZeRO splits over them (runtime/ir/presets.h).
constexpr std::array kOfTokens{PlanAxis::kContext, PlanAxis::kRing, PlanAxis::kExpert, PlanAxis::kData};

}  // namespace

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
  DataTraffic traffic = along(s, ways);
  Strategy spread = s;
  spread[PlanAxis::kExpert] = 1;
  const DataTraffic of_spread = along(spread, ways);
  traffic.reduce_spread = of_spread.reduce, traffic.gather_spread = of_spread.gather;
  traffic.reduce_in_pass_spread = of_spread.reduce_in_pass;
  return traffic;
}

// Without ZeRO all axes that repeat weights add gradients up together. With it a weight lies in parts along
// one dimension, if the width divides: gradients are scattered over one axis after the other, and weights
// gathered over all at once. Otherwise the outermost has at least what the others leave.
DataTraffic OrderBounds::along(const Strategy& s, const Ways& ways) {
  const int devices = s.zero_devices();
  if (devices == 1) return {};
  const double sent = s.zero < 2 && job_.parallel.gradients == kBfloat16 ? 0.5 : 1;
  const int slow = ways.outermost == nullptr ? 1 : of_tokens(s, ways.outermost->axis);
  const Outermost* axis = slow > 1 ? ways.outermost : nullptr;
  const Ways along_it{axis, ways.evenly}, beside{nullptr, ways.evenly};
  DataTraffic traffic;
  if (s.zero == 0) {
    traffic.reduce = traffic.reduce_narrow =
        sent * (axis ? per_byte(s, instr::CollectiveKind::kAllReduce, slow, devices / slow, along_it)
                     : per_byte(s, instr::CollectiveKind::kAllReduce, devices, 1, beside));
    return traffic;
  }
  const double scattered =
      axis == nullptr
          ? 0
          : per_byte(s, instr::CollectiveKind::kReduceScatter, slow, 1, along_it) * slow / devices;
  if (axis != nullptr)
    traffic.reduce_narrow = sent * std::min(scattered, least_all_reduce(s, devices, slow, along_it));
  if (job_.model.hidden % (std::int64_t{devices} * s[PlanAxis::kTensorY]) != 0) {
    if (axis == nullptr) return {};
    if (!splits_all(s, axis->axis)) {
      traffic.reduce = traffic.reduce_narrow;
      return traffic;
    }
    traffic.reduce = sent * scattered, traffic.reduce_in_pass = s.zero >= 2 ? traffic.reduce : 0;
    traffic.gather = per_byte(s, instr::CollectiveKind::kAllGather, slow, 1, along_it) * slow / devices;
    return traffic;
  }
  double left = sent;
  for (const PlanAxis a : kOfTokens) {
    if (s[a] == 1) continue;
    traffic.reduce += left * per_byte(s, instr::CollectiveKind::kReduceScatter, s[a], 1,
                                      axis != nullptr && axis->axis == a ? along_it : beside);
    left /= s[a];
  }
  traffic.scatters = s.zero >= 2, traffic.reduce_in_pass = s.zero >= 2 ? traffic.reduce : 0;
  traffic.gather = axis ? per_byte(s, instr::CollectiveKind::kAllGather, slow, devices / slow, along_it)
                        : per_byte(s, instr::CollectiveKind::kAllGather, devices, 1, beside);
  return traffic;
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

// Whether ZeRO finds a dimension of each weight that has the width to split along the axis, after those
// before it: that, if none else. What is not split is gathered along no axis.
bool OrderBounds::splits_all(const Strategy& s, PlanAxis axis) const {
  std::int64_t parts = s[PlanAxis::kTensorY];
  for (const PlanAxis a : kOfTokens) {
    parts *= s[a];
    if (a == axis) break;
  }
  return job_.model.hidden % parts == 0;
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

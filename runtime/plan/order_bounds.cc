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
  Known known = known_of(s);
  if (known.pieces.pieces == nullptr) return {};
  Bound bound;
  if (!known.straddling) {
    bound.in_any = bound.as_it_is = bound_of(s, known.pieces, known.lying);
    bound.of_more = std::min(bound.in_any, bound_of_more(s, known.pieces, known.lying));
    return bound;
  }
  bound.in_any = bound.of_more = std::numeric_limits<double>::infinity();
  for (const PlanAxis axis : s.order) {
    if (!may_be_outermost(s, axis)) continue;
    lie(known, s, axis);
    const double least = bound_of(s, known.pieces, known.lying);
    bound.in_any = std::min(bound.in_any, least);
    bound.of_more = std::min({bound.of_more, least, bound_of_more(s, known.pieces, known.lying)});
    if (bound.as_it_is == 0) bound.as_it_is = least;
  }
  return bound;
}

double OrderBounds::as_it_is(const Strategy& s) {
  Known known = known_of(s);
  if (known.pieces.pieces == nullptr) return 0;
  if (known.straddling)
    lie(known, s, *std::ranges::find_if(s.order, [&](PlanAxis a) { return may_be_outermost(s, a); }));
  return bound_of(s, known.pieces, known.lying);
}

OrderBounds::Known OrderBounds::known_of(const Strategy& s) {
  Known known{pieces_of(s), {}, std::nullopt};
  if (known.pieces.pieces == nullptr) return known;
  known.lying.data = traffic(s, nullptr);
  known.straddling = straddling(s, table_.machine());
  if (known.straddling) known.lying.apart = known.straddling->stages;
  return known;
}

void OrderBounds::lie(Known& known, const Strategy& s, PlanAxis axis) {
  const Outermost o = outermost(axis, s, *known.straddling);
  known.lying.pieces_apart = pieces_of(s, o);
  known.lying.data_apart = traffic(s, &o);
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

DataTraffic OrderBounds::traffic(const Strategy& s, const Outermost* outermost) {
  DataTraffic traffic = along(s, outermost);
  Strategy spread = s;
  spread[PlanAxis::kExpert] = 1;
  const DataTraffic of_spread = along(spread, outermost);
  traffic.reduce_spread = of_spread.reduce, traffic.gather_spread = of_spread.gather;
  traffic.reduce_in_pass_spread = of_spread.reduce_in_pass;
  return traffic;
}

// Without ZeRO all axes that repeat weights add gradients up together. With it a weight lies in parts along
// one dimension, if the width divides: gradients are scattered over one axis after the other, and weights
// gathered over all at once. Otherwise the outermost has at least what the others leave.
DataTraffic OrderBounds::along(const Strategy& s, const Outermost* outermost) {
  const int devices = s.zero_devices();
  if (devices == 1) return {};
  const double sent = s.zero < 2 && job_.parallel.gradients == kBfloat16 ? 0.5 : 1;
  const int slow = outermost == nullptr ? 1 : of_tokens(s, outermost->axis);
  const Outermost* axis = slow > 1 ? outermost : nullptr;
  if (s.zero == 0)
    return {.reduce =
                sent * (axis ? per_byte(s, instr::CollectiveKind::kAllReduce, slow, devices / slow, axis)
                             : per_byte(s, instr::CollectiveKind::kAllReduce, devices, 1, nullptr))};
  DataTraffic traffic;
  if (job_.model.hidden % (std::int64_t{devices} * s[PlanAxis::kTensorY]) != 0) {
    if (axis == nullptr) return {};
    const double scattered =
        per_byte(s, instr::CollectiveKind::kReduceScatter, slow, 1, axis) * slow / devices;
    if (!splits_all(s, axis->axis)) {
      traffic.reduce = sent * std::min(scattered, least_all_reduce(s, devices, slow, *axis));
      return traffic;
    }
    traffic.reduce = sent * scattered, traffic.reduce_in_pass = s.zero >= 2 ? traffic.reduce : 0;
    traffic.gather = per_byte(s, instr::CollectiveKind::kAllGather, slow, 1, axis) * slow / devices;
    return traffic;
  }
  double left = sent;
  for (const PlanAxis a : kOfTokens) {
    if (s[a] == 1) continue;
    traffic.reduce += left * per_byte(s, instr::CollectiveKind::kReduceScatter, s[a], 1,
                                      axis != nullptr && axis->axis == a ? axis : nullptr);
    left /= s[a];
  }
  traffic.scatters = s.zero >= 2, traffic.reduce_in_pass = s.zero >= 2 ? traffic.reduce : 0;
  traffic.gather = axis ? per_byte(s, instr::CollectiveKind::kAllGather, slow, devices / slow, axis)
                        : per_byte(s, instr::CollectiveKind::kAllGather, devices, 1, nullptr);
  return traffic;
}

// What no dimension is split along the axis for is added up along it and any of the others at once; these
// have scattered it over the rest. Between hosts that may take less than to scatter it: only the sum of what
// each host has is exchanged (collectives/selection.h).
double OrderBounds::least_all_reduce(const Strategy& s, int devices, int slow, const Outermost& axis) {
  std::vector<int> beside{1};
  for (const PlanAxis a : kOfTokens) {
    if (a == axis.axis || s[a] == 1) continue;
    for (std::size_t i = 0, end = beside.size(); i < end; ++i) beside.push_back(beside[i] * s[a]);
  }
  double least = std::numeric_limits<double>::infinity();
  for (const int b : beside)
    least =
        std::min(least, per_byte(s, instr::CollectiveKind::kAllReduce, slow, b, &axis) * b * slow / devices);
  return least;
}

// Whether ZeRO finds a dimension of each weight to split along the axis, after those before it: the width, if
// none else. What is not split is gathered along no axis.
bool OrderBounds::splits_all(const Strategy& s, PlanAxis axis) const {
  std::int64_t parts = s[PlanAxis::kTensorY];
  for (const PlanAxis a : kOfTokens) {
    parts *= s[a];
    if (a == axis) break;
  }
  return job_.model.hidden % parts == 0;
}

// Devices along the axis where it splits tokens, else 1.
int OrderBounds::of_tokens(const Strategy& s, PlanAxis axis) {
  return std::ranges::find(kOfTokens, axis) == kOfTokens.end() ? 1 : s[axis];
}

// What lies over tensor axes in copies is exchanged along these as well, and in a mesh a larger group has
// more links.
double OrderBounds::per_byte(const Strategy& s, instr::CollectiveKind kind, int devices, int beside,
                             const Outermost* outermost) {
  const int tensor = s[PlanAxis::kTensor] * s[PlanAxis::kTensorY];
  return std::min(per_byte(kind, devices, beside, outermost),
                  per_byte(kind, devices, beside * tensor, outermost));
}

double OrderBounds::per_byte(instr::CollectiveKind kind, int devices, int beside,
                             const Outermost* outermost) {
  const Outermost o = outermost == nullptr ? Outermost{} : *outermost;
  const auto [known, is_new] = per_byte_.try_emplace({kind, devices, beside, o.apart, o.begin, o.unit});
  if (!is_new) return known->second;
  std::vector<int> ranks(static_cast<std::size_t>(devices * beside));
  std::iota(ranks.begin(), ranks.end(), 0);
  if (outermost != nullptr) ranks = ranks_along(o, devices, beside);
  return known->second = table_.time_per_byte(kind, ranks);
}

}  // namespace hyperrun

#include "runtime/plan/order_bounds.h"

#include <algorithm>
#include <array>
#include <limits>
#include <numeric>
#include <optional>

#include "runtime/plan/outermost.h"

namespace hyperrun {
namespace {

// In the order in which ZeRO splits over them (runtime/ir/presets.h).
constexpr std::array kOfTokens{PlanAxis::kContext, PlanAxis::kRing, PlanAxis::kExpert, PlanAxis::kData};

}  // namespace

OrderBounds::OrderBounds(const Job& job, PieceTable& table) : job_(job), table_(table) {}

OrderBounds::Bound OrderBounds::of(const Strategy& s) {
  const LayersPieces pieces = pieces_of(s);
  if (pieces.pieces == nullptr) return {};
  Lying lying;
  lying.data = traffic(s, nullptr);
  const std::optional<Straddling> where = straddling(s, table_.machine());
  Bound bound;
  if (!where) {
    bound.in_any = bound.as_it_is = bound_of(s, pieces, lying);
    bound.of_more = std::min(bound.in_any, bound_of_more(s, pieces, lying));
    return bound;
  }
  lying.apart = where->stages;
  bound.in_any = bound.of_more = std::numeric_limits<double>::infinity();
  for (const PlanAxis axis : s.order) {
    if (axis == PlanAxis::kPipeline || s[axis] == 1) continue;
    const Outermost o = outermost(axis, s, *where);
    lying.pieces_apart = pieces_of(s, o);
    lying.data_apart = traffic(s, &o);
    const double least = bound_of(s, pieces, lying);
    bound.in_any = std::min(bound.in_any, least);
    bound.of_more = std::min({bound.of_more, least, bound_of_more(s, pieces, lying)});
    if (bound.as_it_is == 0) bound.as_it_is = least;
  }
  return bound;
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
    traffic.reduce =
        sent * per_byte(s, instr::CollectiveKind::kReduceScatter, slow, 1, axis) * slow / devices;
    if (splits_all(s, axis->axis))
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
  traffic.scatters = s.zero >= 2;
  traffic.gather = axis ? per_byte(s, instr::CollectiveKind::kAllGather, slow, devices / slow, axis)
                        : per_byte(s, instr::CollectiveKind::kAllGather, devices, 1, nullptr);
  return traffic;
}

// Whether ZeRO finds a dimension of each weight to split along the axis, after those before it: the width, if
// none else. What is not split is gathered along no axis, and added up along it by no less than a scatter.
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

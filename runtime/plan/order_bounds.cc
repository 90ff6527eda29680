#include "runtime/plan/order_bounds.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <optional>

#include "runtime/plan/outermost.h"

namespace hyperrun {

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
    return bound;
  }
  lying.apart = where->stages;
  bound.in_any = std::numeric_limits<double>::infinity();
  for (const PlanAxis axis : s.order) {
    if (axis == PlanAxis::kPipeline || s[axis] == 1) continue;
    const Outermost o = outermost(axis, s, *where);
    lying.pieces_apart = pieces_of(s, o);
    lying.data_apart = traffic(s, &o);
    const double least = bound_of(s, pieces, lying);
    bound.in_any = std::min(bound.in_any, least);
    if (bound.as_it_is == 0) bound.as_it_is = least;
  }
  return bound;
}

LayersPieces OrderBounds::pieces_of(const Strategy& s) {
  LayersPieces pieces{table_.find_least(s), nullptr};
  if (s.deeper == 0) return pieces;
  Strategy more = s;
  more.recompute = *next_after(s.recompute);
  pieces.deeper = table_.find_least(more);
  return pieces;
}

LayersPieces OrderBounds::pieces_of(const Strategy& s, const Outermost& axis) {
  LayersPieces pieces{table_.find_least(s, axis), nullptr};
  if (s.deeper == 0) return pieces;
  Strategy more = s;
  more.recompute = *next_after(s.recompute);
  pieces.deeper = table_.find_least(more, axis);
  return pieces;
}

double OrderBounds::bound_of(const Strategy& s, const LayersPieces& pieces, const Lying& lying) const {
  return least_form(s, job_.model, micro_batches(s, job_.training.batch), pieces, &lying).bound;
}

// Without ZeRO all axes that repeat weights add gradients up together.
DataTraffic OrderBounds::traffic(const Strategy& s, const Outermost* outermost) {
  if (s[PlanAxis::kData] == 1) return {};
  const bool along = outermost != nullptr && outermost->axis == PlanAxis::kData;
  const Outermost* axis = along ? outermost : nullptr;
  const auto per_byte = [&](instr::CollectiveKind kind, int beside) {
    return this->per_byte(kind, s[PlanAxis::kData], beside, axis);
  };
  const double sent = s.zero < 2 && job_.parallel.gradients == kBfloat16 ? 0.5 : 1;
  DataTraffic traffic;
  traffic.reduce = sent * (s.zero == 0 ? per_byte(instr::CollectiveKind::kAllReduce,
                                                  s[PlanAxis::kRing] * s[PlanAxis::kContext])
                                       : per_byte(instr::CollectiveKind::kReduceScatter, 1));
  if (s.zero > 0) traffic.gather = per_byte(instr::CollectiveKind::kAllGather, 1);
  return traffic;
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

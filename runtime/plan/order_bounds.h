// Bounds of a step that know of the machine's levels and of the data axis. In whatever order axes lie, one of
// them is the outermost of a stage's devices: the least of the bounds of all such choices is a bound, too.
#pragma once

#include <map>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "runtime/ir/job.h"
#include "runtime/plan/closed_form.h"
#include "runtime/plan/lying.h"
#include "runtime/plan/outermost.h"
#include "runtime/plan/piece_table.h"
#include "runtime/plan/strategy.h"
#include "runtime/plan/zero_splits.h"

namespace hyperrun {

class OrderBounds {
 public:
  // Both outlive it.
  OrderBounds(const Job& job, PieceTable& table);

  // ns; no simulation of it is shorter, in whatever order its axes lie. `of_more`: nor of it with more layers
  // that recompute more, in whatever order.
  struct Bound {
    double in_any = 0, of_more = 0;
  };
  // 0 where it does not divide.
  Bound of(const Strategy& strategy);
  // In its own order, in which the pipeline's axis is the slowest: of several that may lie outermost one is
  // looked at.
  double as_it_is(const Strategy& strategy);

 private:
  // A strategy's pieces, and how its axes lie side by side.
  struct Known {
    LayersPieces pieces;
    Lying lying;
    std::optional<Straddling> straddling;  // then one axis is the outermost
  };
  // How groups along axes may lie: along one that is the outermost, or side by side; and where hosts have
  // unequal numbers of them then, as an order has it in which they have not.
  struct Ways {
    const Outermost* outermost = nullptr;
    bool evenly = true;
  };
  Known known_of(const Strategy& strategy, bool evenly);
  void lie(Known& known, const Strategy& strategy, PlanAxis outermost, bool evenly);
  void look_inside(Known& known, const Strategy& strategy, Bound& bound);
  static bool may_be_outermost(const Strategy& strategy, PlanAxis axis);
  LayersPieces pieces_of(const Strategy& strategy);
  LayersPieces pieces_of(const Strategy& strategy, const Outermost& axis);
  double bound_of(const Strategy& strategy, const LayersPieces& pieces, const Lying& lying) const;
  double bound_of_more(const Strategy& strategy, const LayersPieces& pieces, const Lying& lying) const;
  DataTraffic traffic(const Strategy& strategy, const Ways& ways);
  Exchange along(const Strategy& strategy, Widths widths, const Ways& ways);
  // Of what it splits along the outermost axis alone, if at all.
  Exchange along_outermost(const Strategy& strategy, const Outermost& axis, const Ways& ways);
  double reduce_narrow(const Strategy& strategy, const Ways& ways);
  double sent(const Strategy& strategy) const;  // of bytes of gradients
  // `ways`: with an outermost axis.
  double least_all_reduce(const Strategy& strategy, int devices, int slow, const Ways& ways);
  bool lies_evenly(const Strategy& strategy);
  static int of_tokens(const Strategy& strategy, PlanAxis axis);
  double per_byte(const Strategy& strategy, instr::CollectiveKind kind, int devices, int beside,
                  const Ways& ways);
  double per_byte(instr::CollectiveKind kind, int devices, int beside, const Ways& ways);

  const Job& job_;
  PieceTable& table_;
  std::map<std::pair<decltype(Strategy::sizes), decltype(Strategy::order)>, bool> evenly_;  // lies_evenly()
  // Of so many devices along an axis, and of others beside each.
  std::map<std::tuple<instr::CollectiveKind, int, int, int, int, int, bool>, double> per_byte_;
};

}  // namespace hyperrun

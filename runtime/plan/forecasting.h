// The second round of a search: strategies get a forecast, and where that does not fit another with as many
// layers that recompute more as let it fit.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "runtime/ir/job.h"
#include "runtime/plan/bounding.h"
#include "runtime/plan/closed_form.h"
#include "runtime/plan/kept_structures.h"
#include "runtime/plan/piece_table.h"
#include "runtime/plan/space.h"
#include "runtime/plan/strategy.h"

namespace hyperrun {

struct Forecasted {
  Forecast forecast;
  Strategy strategy;
  std::size_t turn = 0;  // of leaders (candidates.h), from which on it may be one
};

// With transfers: its forecast over what there is, of what stays in HBM and of all that devices have on
// average, whichever is more. `share`: a device's of the pool.
double overfull(const Forecast& f, std::int64_t hbm, std::int64_t share);

// What becomes of a strategy that was bounded.
struct Forecasts {
  // ns, in any order of axes, and in its own; in any order, of it and of what recomputes more in some layers.
  // Of what gets no forecast the last is no better than it has to be: another of these has none greater.
  double bound = 0, bound_as_it_is = 0, bound_of_more = 0;
  // `deeper`: with as many layers that recompute more as let it fit, or with most where its forecast says
  // that it does not and its bound that it may.
  std::optional<Forecasted> as_it_is, deeper;
  bool fewer_may_fit = false;  // layers that recompute more than `deeper` has
};

class Forecasting {
 public:
  // `structures`: of the first round; outlive it.
  Forecasting(const Job& base, const Space& space, KeptStructures* structures = nullptr);

  // From which bound on, ns, no forecast of a strategy is wanted: in any thread, and it may fall.
  using Enough = std::function<double(const Strategy&)>;
  // Takes, in no order and one at a time, what has become of strategies of the list, by index, with or
  // without forecasts.
  using Take = std::function<void(std::size_t, Forecasts&&)>;

  // Of each on all cores, but of those whose bound, as they are or in the list, is more than enough. The list
  // is in the order of bounds. Forecasts do not depend on what is enough when.
  void each(std::span<const Bounded> list, const Enough& enough, const Take& take);

  // Nothing where it does not divide.
  std::optional<Forecast> forecast_of(const Strategy& strategy);
  // Of strategies that differ in the order of their axes alone: of all whose pieces are the same the first,
  // whose steps may differ by how groups lie elsewhere. In any thread, with a table of its own, of the same
  // job.
  std::vector<Forecasted> of_orders(std::span<const Strategy> orders, PieceTable& table) const;

  const Machine& machine() const { return table_.machine(); }

 private:
  class Working;

  std::optional<LayersPieces> pieces_of(const Strategy& strategy, PieceTable& table) const;
  std::optional<Forecast> forecast_of(const Strategy& strategy, PieceTable& table) const;
  void forecast_of(const Strategy& strategy, PieceTable& table, Forecasts& all) const;
  bool may_be(const Strategy& strategy) const;
  void look_deeper(Strategy strategy, PieceTable& table, Forecasts& all) const;

  const Job& base_;
  const Space& space_;
  std::int64_t hbm_;
  KeptStructures* structures_;
  PieceTable table_;  // of what is asked for alone
};

}  // namespace hyperrun

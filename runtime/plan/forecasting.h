// The second round of a search: strategies get a forecast, and where that does not fit another with as many
// layers that recompute more as let it fit.
#pragma once

#include <cstddef>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "runtime/ir/job.h"
#include "runtime/plan/bounding.h"
#include "runtime/plan/closed_form.h"
#include "runtime/plan/piece_table.h"
#include "runtime/plan/space.h"
#include "runtime/plan/strategy.h"

namespace hyperrun {

struct Forecasted {
  Forecast forecast;
  Strategy strategy;
};

// What becomes of a strategy that was bounded.
struct Forecasts {
  std::optional<Forecasted> as_it_is,
      deeper;  // `deeper`: with as many layers that recompute more as let it fit
  double least_left = std::numeric_limits<double>::infinity();  // ns, bound of those with fewer that may fit
};

class Forecasting {
 public:
  Forecasting(const Job& base, const Space& space);
  ~Forecasting();

  // Of each on all cores, until `take` says that it is enough. It is called in the order of the list, by one
  // thread at a time.
  void each(std::span<const Bounded> list, const std::function<bool(const Bounded&, const Forecasts&)>& take);

  // Nothing where it does not divide.
  std::optional<Forecast> forecast_of(const Strategy& strategy);
  // What is the same where groups lie as they do: its pieces, and the time of a message (PieceTable).
  std::pair<const Pieces*, double> lies(const Strategy& strategy);

  const Machine& machine() const { return tables_.front()->machine(); }

 private:
  class Working;

  std::string structure_of(Strategy strategy) const;
  PieceTable& table_of(const Strategy& strategy);
  std::optional<Forecast> forecast_of(const Strategy& strategy, PieceTable& table) const;
  Forecasts forecasts_of(const Strategy& strategy, PieceTable& table) const;
  bool may_be(const Strategy& strategy) const;
  void look_deeper(Strategy strategy, PieceTable& table, Forecasts& all) const;

  const Job& base_;
  const Space& space_;
  std::int64_t hbm_;
  std::vector<std::unique_ptr<PieceTable>> tables_;      // a thread each
  std::unordered_map<std::string, std::size_t> owners_;  // by structure: whose table has it
};

}  // namespace hyperrun

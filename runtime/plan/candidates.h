// The first two rounds of a search: which strategies are worth a simulation, without one.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <vector>

#include "runtime/ir/job.h"
#include "runtime/plan/bounding.h"
#include "runtime/plan/closed_form.h"
#include "runtime/plan/dimensions.h"
#include "runtime/plan/forecasting.h"
#include "runtime/plan/leader.h"
#include "runtime/plan/progress.h"
#include "runtime/plan/space.h"
#include "runtime/plan/strategy.h"

namespace hyperrun {

// Of each turn of so many leaders the best are looked at in all orders of their axes.
inline constexpr std::size_t kLeadersOfATurn = 4;

struct Search;

struct SearchOptions {
  const Space* space = &spaces().front();
  std::int32_t leaders = 8;  // that are simulated
  Progress progress;
  // Told each time that some leaders were simulated, by the thread that searches: all so far, in their order.
  std::function<void(const Search&)> so_far = {};
  bool of_each_kind = true;                           // of small jobs more are simulated that move tensors
  bool unlikely = true;                               // what hardly fits is tried, where nothing else does
  std::int64_t most_moved_passes = kMostMovedPasses;  // of what is simulated with transfers
  Refusals refusals;                                  // what is refused does not say what it takes
  std::size_t long_step = kLongStep;                  // longer ones are refused as long as others fit

  // Whose best become leaders: the space itself, then, where it is the widest, the restricted ones, as far as
  // their bounds are below the best so far, so that it seldom misses what they find.
  std::vector<const Space*> chosen_from() const;
};

// What is known of a space without simulations.
struct Survey {
  std::int64_t strategies = 0;  // of the space, in one order of their axes each
  // So do a few more searches and simulations then.
  bool takes_a_moment(std::int32_t layers) const { return strategies * layers <= 50'000; }
  std::int64_t do_not_divide = 0, do_not_fit = 0, bounded = 0, forecast = 0;
  std::int64_t left_for_memory =
      0;  // of those that were forecast: they would not fit, with or without transfers
  Alternatives alternatives;
  std::vector<Needs> modest;            // as Bounds have them
  Bytes least_memory{};                 // of HBM: none needs less; 0: not known
  std::optional<Forecasted> too_large;  // the best by its forecast of those that cannot be simulated
};

struct Candidates {
  Survey survey;
  std::vector<Forecasted>
      forecasts;  // in the order of their times, the best ones in each order of their axes
  std::vector<Forecasted>
      unlikely;  // by their forecasts they do not fit, by their bounds they may; some with transfers
  double least_left = std::numeric_limits<double>::infinity();  // ns: the least bound of all others
};

Candidates candidates_of(const Job& base, const SearchOptions& options);

// ns: no strategy is shorter that is left out with this one, which was forecast and not simulated: with more
// layers that recompute more as well, but where these have a forecast of their own, as it does not fit by
// its.
double bound_left(const Forecasted& candidate, Bytes hbm);

}  // namespace hyperrun

// The candidates of a search: its first two rounds choose the strategies worth a simulation.
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
#include "runtime/plan/forecaster.h"
#include "runtime/plan/progress.h"
#include "runtime/plan/simulated_candidate.h"
#include "runtime/plan/space.h"
#include "runtime/plan/strategy.h"

namespace hyperrun {

// Leaders are chosen in turns. In each turn the best of so many are tried in all axis orders.
inline constexpr std::size_t kLeadersPerTurn = 4;

struct Search;

struct SearchOptions {
  const Space* space = &spaces().front();
  std::int32_t leaders = 8;  // number of strategies to simulate
  Progress progress;
  // Called by the searching thread after some leaders were simulated, with the result so far.
  std::function<void(const Search&)> so_far = {};
  bool of_each_kind = true;  // small jobs: simulate more kinds of strategies with offloading
  bool unlikely = true;      // if nothing else fits: try strategies that hardly fit
  std::int64_t most_offloaded_passes = kMostOffloadedPasses;  // limit for simulations with offloading
  Refusals refusals;                  // what the compiler may refuse without saying how much memory it needs
  std::size_t long_step = kLongStep;  // longer steps are refused while others fit

  // Spaces whose best become leaders: the space itself and, if it is the widest, the restricted ones. Their
  // strategies are simulated only if their bounds are below the incumbent.
  std::vector<const Space*> chosen_from() const;
};

// The knowledge that a search has of a space without simulations.
struct Survey {
  std::int64_t strategies = 0;  // one axis order each
  // True if more searches and simulations are affordable.
  bool is_quick(std::int32_t layers) const { return strategies * layers <= 50'000; }
  std::int64_t do_not_divide = 0, do_not_fit = 0, bounded = 0, forecast = 0;
  std::int64_t dropped_for_memory = 0;  // forecast not to fit, with or without offloading
  Alternatives alternatives;
  std::vector<MemoryNeed> smallest;     // see Bounds
  Bytes least_memory{};                 // least HBM that any strategy needs; 0: not known
  std::optional<Forecasted> too_large;  // best by forecast among those too large to simulate
};

struct Candidates {
  Survey survey;
  std::vector<Forecasted> forecasts;  // by forecast time; the best ones in every axis order
  std::vector<Forecasted>
      unlikely;  // doubtful: not by the forecast, but by the bound they may fit; some with offloading
  double least_dropped = std::numeric_limits<double>::infinity();  // least bound of all others, ns
};

Candidates candidates_of(const Job& base, const SearchOptions& options);

// Lower bound of everything that is dropped with a candidate, ns. Variants with extra recomputing layers are
// included, unless they have forecasts of their own because the candidate does not fit.
double bound_if_dropped(const Forecasted& candidate, Bytes hbm);

}  // namespace hyperrun

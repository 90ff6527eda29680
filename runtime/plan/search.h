// The search for the best strategy, in three rounds, each with fewer and better numbers:
//
// 1. every strategy gets a bound of its step and of its memory (bounding.h): what cannot fit is out;
//
// 2. strategies whose bound is below the best forecasts of those that fit get a second bound
// (order_bounds.h),
//    and where that is below them a forecast (closed_form.h); the best ones in every order of their axes;
//
// 3. in the order of their forecasts, corrected by what was simulated of their like (likeness.h), the leaders
//    are compiled, placed and simulated event by event.
//
// No strategy that was left out is faster than its bound, so the best simulated step, over the least bound of
// all that were not simulated, says how far the best of the whole space can be from it: Search::gap. A
// best-first branch and bound that ends early (Land and Doig 1960).
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "runtime/ir/job.h"
#include "runtime/plan/bounding.h"
#include "runtime/plan/closed_form.h"
#include "runtime/plan/dimensions.h"
#include "runtime/plan/forecasting.h"
#include "runtime/plan/fusion.h"
#include "runtime/plan/space.h"
#include "runtime/plan/strategy.h"
#include "runtime/sim/breakdown.h"

namespace hyperrun {

// Times that a step goes through a layer, of all its micro-batches: what is more would take the planner's
// own memory (some ten million instructions, ten to twenty GB). To plan transfers takes minutes of much less.
inline constexpr std::int64_t kMostPasses = 1 << 16, kMostMovedPasses = 1 << 13;
bool can_be_simulated(const Job& base, const Strategy& strategy);

struct SearchOptions {
  const Space* space = &spaces().front();
  std::int32_t leaders = 8;  // that are simulated
  // Called now and then, for those who wait: what is done, and how many of it.
  std::function<void(const std::string& what, std::int64_t count)> progress;
};

// A strategy that was compiled and simulated, or refused then.
struct Leader {
  Strategy strategy;
  Forecast forecast;  // of time 0: none was made
  std::int32_t micro_batches = 1;
  double simulated = 0;  // ns of a step; 0: refused
  Bytes hbm{}, pool{};   // the fullest device's, and of all devices together; of what does not fit as well
  Bytes hbm_as_asked{};  // of the strategy that was asked for, where try_near() has tried others
  double mfu = 0;
  Breakdown parts;      // of the slowest device
  Fusion fusion;        // what its axes are used for, where it fits
  std::string why_not;  // it was refused,
  bool fits = true;     // for another reason than that it does not fit
};

// What was compiled and simulated for a question about `asked`.
struct Answered {
  Strategy asked;
  Leader leader;
};

struct Search {
  std::vector<Leader> leaders;   // the fastest first, the refused last
  std::vector<Answered> others;  // that were compiled and simulated besides: see why.h
  std::int64_t strategies = 0;   // of the space, in one order of their axes each
  std::int64_t do_not_divide = 0, do_not_fit = 0, bounded = 0, forecast = 0;
  Alternatives alternatives;
  double least_bound = 0;               // ns, of all that may fit and were not simulated
  std::vector<Needs> modest;            // strategies that need least memory, by their bounds; the least first
  std::optional<Forecasted> too_large;  // the best by its forecast of those that cannot be simulated

  bool found() const { return !leaders.empty() && leaders.front().simulated > 0; }
  // No strategy of the space is faster than the best by more than this share; 0: it is the best; infinite
  // where bounds prove nothing.
  double gap() const;
  // A simulated step was shorter than its bound, so bounds prove nothing here.
  bool bounds_hold = true;

  // One of the space that others have found and simulated, faster than all leaders: the first then. It was
  // left out, so its bound is no less than the least.
  void adopt(Leader leader);
};

// `base`: model, machine, batch and training; its own strategy is of no meaning.
Search search(const Job& base, const SearchOptions& options);

// Compiles and simulates a job as it is; its strategy and forecast are of no meaning.
Leader try_job(const Job& job);

// The same of a strategy.
Leader try_strategy(const Job& base, const Strategy& strategy, const Forecast& forecast);

// Of one that was to fit by its forecast: with more layers that recompute more where it does not, as far as
// the space has that and as many as should do by what the first of them saves, or some fewer where they are
// not needed.
Leader try_near(const Job& base, const Space& space, const Strategy& strategy, const Forecast& forecast);

}  // namespace hyperrun
